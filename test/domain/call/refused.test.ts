/** Requests that are refused before they are calls: they are written down all the same. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import { call } from '../happenings.ts';

describe('a request that was refused before it was a call', () => {
  it('is written down with its answer, and changes nothing', () => {
    const failure = { reason: 'InvalidField', message: 'It could not be read.' } as const;
    given()
      .when(call({ method: 'Refused', rpc: 'RunPodSandbox', failure }))
      .follows({ answers: ['Refused InvalidField'] });
    given()
      .when(call({ method: 'Unimplemented', rpc: 'Later' }))
      .follows({ answers: ['Unimplemented NotImplemented'] });
  });
});
