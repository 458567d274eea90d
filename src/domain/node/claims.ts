/** Timers after which what nobody asked for is undone (C5), for what a start found. */
import { containerStream, sandboxStream } from '../model/records.ts';
import type { Container, PodSandbox } from '../model/state.ts';
import { afterMs, CLAIM_MS, ensureTimer, type Turn } from '../deciding/turn.ts';
import { isDoubted } from '../model/journal-doubt.ts';
import { rulesOf } from '../model/rules.ts';

/** Also of one that is NOTREADY: nobody else will take down what nobody asked for. */
export function waitForClaimOfPod(turn: Turn, { id, goal, phase, claimed }: PodSandbox): void {
  const isMade = rulesOf(turn.state) < 2 ? phase === 'ready' : phase !== 'creating';
  if (goal === 'run' && isMade && !claimed) setClaimTimer(turn, sandboxStream(id));
}

export function waitForClaimOfContainer(turn: Turn, { id, goal, phase }: Container): void {
  if (goal === 'run' && phase.kind === 'created' && !phase.claimed) setClaimTimer(turn, containerStream(id));
}

/** What nobody asks for again is undone: not while what was asked for may be missing from the journal. */
function setClaimTimer(turn: Turn, stream: string): void {
  if (!isDoubted(turn.state)) ensureTimer(turn, stream, 'claim', afterMs(turn, CLAIM_MS));
}
