/** A turn that threw, through a bug: the least that must follow from its input all the same, and who is looked at again. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import { containerStream, sandboxStream } from '../../../src/domain/model/records.ts';
import type { EffectResults } from '../../../src/domain/model/effects.ts';
import type { TurnFailed } from '../../../src/domain/model/turn-failed.ts';
import {
  allSucceeds,
  callerGoes,
  CONTAINER,
  createdContainer,
  fails,
  inTurn,
  isDue,
  POD,
  restart,
  runPod,
  readyPodWithPause,
  runningContainer,
  startContainer,
  stopContainer,
  stopPod,
  succeeds,
} from '../happenings.ts';
import type { Happening } from '../given.ts';

const exit = { pid: 12, exitStatus: 3, exitedAtNs: '1800000000000000001', oomKills: 0 };

/** Deciding what follows from the container's exit threw; how it is handled is the engine's to say. */
const exitThrows =
  (handling: TurnFailed['handling']): Happening =>
  (tell) => {
    const input = { type: 'task.exited', body: { exit } } as const;
    const body = { handling, input, error: 'a bug' };
    tell({ type: 'turn.failed', body, stream: containerStream(CONTAINER), call: null });
  };

describe('an exit whose turn threw', () => {
  it('is shown all the same, and container and pod are looked at again soon', () => {
    given(runningContainer)
      .when(exitThrows('noted'))
      .follows({ records: ['container.exited'], asks: ['wait: retry', 'wait: retry'] });
  });

  it('is followed at that look by what should have followed at once', () => {
    given(runningContainer, exitThrows('noted'))
      .when(isDue('retry'))
      .follows({ asks: ['DeleteTask'] });
  });

  it('answers the calls that waited for it', () => {
    given(runningContainer, stopContainer(), succeeds('KillTask'))
      .when(exitThrows('noted'))
      .follows({
        records: ['container.exited'],
        asks: ['wait: retry', 'wait: retry'],
        answers: ['StopContainer OK'],
      });
  });

  it('is asked of the shim where not even that could be written down, and calls that waited for it fail', () => {
    given(runningContainer, stopContainer(), succeeds('KillTask'))
      .when(exitThrows('interrupted'))
      .follows({ asks: ['ReconnectShim', 'wait: retry', 'wait: retry'], answers: ['StopContainer Bug'] });
  });
});

/** Deciding what follows from the timer that is due threw, and was looked at no further. */
const timerThrows =
  (purpose: string, stream: string): Happening =>
  (tell, { effects }) => {
    const due = [...effects.values()].find(({ intent }) => intent.kind === 'WaitUntil' && intent.purpose === purpose);
    if (due === undefined) throw new Error(`Nothing waits for ${purpose}.`);
    const input = { type: 'effect.ended', body: { effect: due.id, kind: 'WaitUntil', result: {} } } as const;
    const body = { handling: 'interrupted', input, effect: due.id, error: 'a bug' } as const;
    tell({ type: 'turn.failed', body, stream, call: null });
  };

describe('the end of the time to claim a pod, whose turn threw', () => {
  it('comes again, and then the pod that nobody wants is undone', () => {
    given(runPod(), callerGoes, allSucceeds, timerThrows('claim', sandboxStream(POD)))
      .when(isDue('claim'))
      .follows({ records: ['sandbox.failed'], asks: ['DetachNetwork', 'StopShim'] });
  });
});

/** Deciding what follows from the loss of the pod's shim threw, and the loss alone is known. */
const shimLossThrows: Happening = (tell) => {
  const body = { handling: 'noted', input: { type: 'shim.lost', body: {} }, error: 'a bug' } as const;
  tell({ type: 'turn.failed', body, stream: sandboxStream(POD), call: null });
};

describe('the loss of a shim whose turn threw', () => {
  it('ends, at the next look, what that shim ran', () => {
    given(runningContainer, shimLossThrows)
      .when(inTurn(isDue('retry'), isDue('retry')))
      .follows({ records: ['container.lost'], asks: ['DeleteTask'] });
  });

  it('ends, at the next look, a start of which only that shim could have told what became of it', () => {
    given(createdContainer, startContainer, restart(), fails('ReconnectShim'), shimLossThrows)
      .when(inTurn(isDue('retry'), isDue('retry')))
      .follows({ records: ['container.lost'], asks: ['DeleteTask'] });
  });
});

const ANSWER = { gone: false, tasks: [{ containerId: POD, status: 'running', pid: 11, startTicks: '5' }] };

/** The shim has answered, and what follows from that could not be decided. */
const answerThrows =
  (handling: 'noted' | 'interrupted'): Happening =>
  (tell, { effects }) => {
    const asked = [...effects.values()].find(({ intent }) => intent.kind === 'ReconnectShim');
    if (asked === undefined) throw new Error('No shim is asked.');
    const input = { type: 'effect.ended', body: { effect: asked.id, kind: 'ReconnectShim', result: ANSWER } };
    const body = { handling, input, effect: asked.id, error: 'a bug' } as const;
    tell({ type: 'turn.failed', body, stream: sandboxStream(POD), call: null });
  };

describe("a shim's answer whose turn threw", () => {
  const heard = succeeds('ReconnectShim', ANSWER as EffectResults['ReconnectShim']);
  const counted = [fails('ReconnectShim', 'Bug'), answerThrows('noted')];

  for (const [index, unheard] of counted.entries()) {
    it(`holds up the stop of its pod until it was asked again (C3), ${index === 0 ? 'taken for a failure' : 'noted'}`, () => {
      given(readyPodWithPause, restart(), unheard)
        .when(stopPod)
        .follows({ records: ['sandbox.stopping'] });
      given(readyPodWithPause, restart(), unheard, stopPod)
        .when(isDue('retry'), heard)
        .follows({ asks: ['ReconnectShim', 'DetachNetwork', 'KillTask'] });
    });
  }

  it('is asked for at once where not even that could be written down', () => {
    given(readyPodWithPause, restart(), answerThrows('interrupted'), stopPod)
      .when(heard)
      .follows({ asks: ['DetachNetwork', 'KillTask'] });
  });

  it('holds it up no more after three times', () => {
    given(
      readyPodWithPause,
      restart(),
      fails('ReconnectShim', 'Bug'),
      isDue('retry'),
      fails('ReconnectShim', 'Bug'),
      stopPod,
    )
      .when(isDue('retry'), fails('ReconnectShim', 'Bug'))
      .follows({ asks: ['ReconnectShim', 'wait: retry', 'DetachNetwork', 'DeleteTask'] });
  });
});
