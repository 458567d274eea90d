/** UpdateRuntimeConfig and SetLogLevel: what clients set of the node. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import { call } from '../happenings.ts';

describe('UpdateRuntimeConfig', () => {
  it('writes the pod CIDR down and answers', () => {
    given()
      .when(call({ method: 'UpdateRuntimeConfig', podCidr: '10.0.0.0/16' }))
      .follows({ records: ['node.configured'], answers: ['UpdateRuntimeConfig OK'] });
  });
});

describe('SetLogLevel', () => {
  it('is written down and answered; whoever writes the log does the rest', () => {
    given()
      .when(call({ method: 'SetLogLevel', level: 'debug' }))
      .follows({ answers: ['SetLogLevel OK'] });
  });
});
