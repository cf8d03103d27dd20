import { decodeClient, decodeServer, encode, type ServerEffect, type WireMessage } from '@sandwire/protocol'
import type { Tamper } from './sim-link.ts'

/** A fault put in on purpose, as if the core had a bug: the simulator has to notice every one. */
export interface Sabotage {
  /** Rewrites what a client's connection carries; `attempt` counts its connections from 1. */
  readonly link?: (attempt: number) => Tamper
  /** Rewrites what a server session asks for. */
  readonly effects?: (effects: readonly ServerEffect[]) => readonly ServerEffect[]
  /** The create ledger forgets that it has seen an id. */
  readonly forgetsCreates?: true
  /** Sessions do not ask whose attachment it is that resumes. */
  readonly trustsEveryone?: true
  /** Frames of a replaced connection are taken for the new one's. */
  readonly mixesLinks?: true
  /** Screens are rendered one byte behind the offset they are said to be of. */
  readonly rendersLate?: true
}

type ClientType = 'ack' | 'roleSeen'

function typeOfClient(data: WireMessage): string | undefined {
  const frame = decodeClient(data)
  return frame?.kind === 'control' ? frame.message.type : frame?.kind
}

function typeOfServer(data: WireMessage): string | undefined {
  const frame = decodeServer(data)
  return frame?.kind === 'control' ? frame.message.type : frame?.kind
}

/** Rewrites one message of each connection: the first upward or downward one that `isIt` picks. */
function once(
  direction: 'up' | 'down',
  isIt: (data: WireMessage) => boolean,
  rewrite: (data: WireMessage) => WireMessage[],
): Tamper {
  let isDone = false
  return (way, data) => {
    if (isDone || way !== direction || !isIt(data)) return [data]
    isDone = true
    return rewrite(data)
  }
}

const isInput = (data: WireMessage): boolean => typeof data !== 'string' && data.byteLength > 0
const isOutput = (data: WireMessage): boolean => typeOfServer(data) === 'data'

/** Loses messages of a kind on every connection that resumes. */
function deafAfterResume(type: ClientType): NonNullable<Sabotage['link']> {
  return (attempt) => (way, data) =>
    attempt > 1 && way === 'up' && typeOfClient(data) === type ? [] : [data]
}

function flip(data: WireMessage): WireMessage {
  if (typeof data === 'string') return data
  const copy = data.slice()
  copy[copy.length - 1] = (copy.at(-1) ?? 0) ^ 0x40
  return copy
}

/** Holds the last output frame back until the exit has been told. */
function exitOvertakesOutput(): Tamper {
  let held: WireMessage | undefined
  return (way, data) => {
    if (way === 'up') return [data]
    const before = held === undefined ? [] : [held]
    held = undefined
    if (typeOfServer(data) === 'exit') return [data, ...before]
    if (!isOutput(data)) return [...before, data]
    held = data
    return before
  }
}

function ackMore(data: WireMessage): WireMessage[] {
  const frame = decodeClient(data)
  if (frame?.kind !== 'control' || frame.message.type !== 'ack') return [data]
  return [encode({ type: 'ack', output: frame.message.output + 1 })]
}

function withoutEffect(name: ServerEffect['do']): NonNullable<Sabotage['effects']> {
  return (effects) => effects.filter((effect) => effect.do !== name)
}

/** Every fault by the bug it stands for. */
export const SABOTAGES: Readonly<Record<string, Sabotage>> = {
  'input is not sent again after a cut': {
    link: (attempt) =>
      once(
        'up',
        (data) => attempt > 1 && isInput(data),
        () => [],
      ),
  },
  'input is sent twice after a cut': {
    link: (attempt) =>
      once(
        'up',
        (data) => attempt > 1 && isInput(data),
        (data) => [data, data],
      ),
  },
  'an ack claims a byte that was not sent': {
    link: () => once('up', (data) => typeOfClient(data) === 'ack', ackMore),
  },
  'acks are not repeated after a cut': { link: deafAfterResume('ack') },
  'a change of role is never confirmed': {
    link: () => (way, data) => (way === 'up' && typeOfClient(data) === 'roleSeen' ? [] : [data]),
  },
  'an output frame is lost': { link: () => once('down', isOutput, () => []) },
  'an output frame is doubled': { link: () => once('down', isOutput, (data) => [data, data]) },
  'an output byte is changed': { link: () => once('down', isOutput, (data) => [flip(data)]) },
  'an input byte is changed': { link: () => once('up', isInput, (data) => [flip(data)]) },
  'the exit overtakes output': { link: exitOvertakesOutput },
  'the exit is not told': { link: () => (_, data) => (typeOfServer(data) === 'exit' ? [] : [data]) },
  'the exit has another code': { effects: (effects) => effects.map(withOtherExit) },
  'a signal is applied twice': { effects: (effects) => effects.flatMap(twiceIfSignal) },
  'an end of input is forgotten': { effects: withoutEffect('closeInput') },
  'the process is not paused': { effects: withoutEffect('pause') },
  'the process is not resumed': { effects: withoutEffect('resume') },
  'a resize is forgotten': { effects: withoutEffect('resize') },
  'an abandoned process is not ended': { effects: withoutEffect('terminate') },
  'a retried create is not recognized': { forgetsCreates: true },
  'anybody may resume an attachment': { trustsEveryone: true },
  'a replaced connection is still heard': { mixesLinks: true },
  'a screen is older than it says': { rendersLate: true },
}

function twiceIfSignal(effect: ServerEffect): readonly ServerEffect[] {
  return effect.do === 'signal' ? [effect, effect] : [effect]
}

function withOtherExit(effect: ServerEffect): ServerEffect {
  if (effect.do !== 'send') return effect
  const frame = decodeServer(effect.data)
  if (frame?.kind !== 'control' || frame.message.type !== 'exit') return effect
  return {
    ...effect,
    data: encode({ ...frame.message, code: ((frame.message.code ?? 0) + 1) % 256, signal: null }),
  }
}
