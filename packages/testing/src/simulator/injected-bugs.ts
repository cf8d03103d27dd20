import { decodeClient, decodeServer, encode, type ServerEffect, type WireMessage } from '@sandwire/protocol'
import type { Tamper } from './sim-connection.ts'

/** A bug added on purpose. The checks must detect every one, or they prove nothing. */
export interface InjectedBug {
  /** Rewrites the messages of a client's connection; `attempt` counts its connections from 1. */
  readonly connection?: (attempt: number) => Tamper
  /** Rewrites the effects of a server session. */
  readonly effects?: (effects: readonly ServerEffect[]) => readonly ServerEffect[]
  /** The create ledger forgets the create ids it has seen. */
  readonly forgetsCreates?: true
  /** Sessions do not check which principal resumes an attachment. */
  readonly skipsOwnerCheck?: true
  /** Frames of a replaced connection are attributed to the new one. */
  readonly mixesConnections?: true
  /** Snapshots are rendered one byte before the offset they claim. */
  readonly rendersStale?: true
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

/** Rewrites one message of each connection: the first one in `direction` that `matches`. */
function once(
  direction: 'up' | 'down',
  matches: (data: WireMessage) => boolean,
  rewrite: (data: WireMessage) => WireMessage[],
): Tamper {
  let isDone = false
  return (way, data) => {
    if (isDone || way !== direction || !matches(data)) return [data]
    isDone = true
    return rewrite(data)
  }
}

const isInput = (data: WireMessage): boolean => typeof data !== 'string' && data.byteLength > 0
const isOutput = (data: WireMessage): boolean => typeOfServer(data) === 'data'

/** Drops messages of one type on every connection that resumes. */
function dropAfterResume(type: ClientType): NonNullable<InjectedBug['connection']> {
  return (attempt) => (way, data) =>
    attempt > 1 && way === 'up' && typeOfClient(data) === type ? [] : [data]
}

function flip(data: WireMessage): WireMessage {
  if (typeof data === 'string') return data
  const copy = data.slice()
  copy[copy.length - 1] = (copy.at(-1) ?? 0) ^ 0x40
  return copy
}

/** Delays the last output frame until after the exit. */
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

function withoutEffect(name: ServerEffect['do']): NonNullable<InjectedBug['effects']> {
  return (effects) => effects.filter((effect) => effect.do !== name)
}

/** The bugs by description, which is also the test title. */
export const INJECTED_BUGS: Readonly<Record<string, InjectedBug>> = {
  'input is not resent after a disconnect': {
    connection: (attempt) =>
      once(
        'up',
        (data) => attempt > 1 && isInput(data),
        () => [],
      ),
  },
  'input is sent twice after a disconnect': {
    connection: (attempt) =>
      once(
        'up',
        (data) => attempt > 1 && isInput(data),
        (data) => [data, data],
      ),
  },
  'an ack claims a byte that was not sent': {
    connection: () => once('up', (data) => typeOfClient(data) === 'ack', ackMore),
  },
  'acks are not resent after a disconnect': { connection: dropAfterResume('ack') },
  'a role change is never confirmed': {
    connection: () => (way, data) => (way === 'up' && typeOfClient(data) === 'roleSeen' ? [] : [data]),
  },
  'an output frame is lost': { connection: () => once('down', isOutput, () => []) },
  'an output frame is duplicated': { connection: () => once('down', isOutput, (data) => [data, data]) },
  'an output byte is changed': { connection: () => once('down', isOutput, (data) => [flip(data)]) },
  'an input byte is changed': { connection: () => once('up', isInput, (data) => [flip(data)]) },
  'the exit overtakes output': { connection: exitOvertakesOutput },
  'the exit is not sent': { connection: () => (_, data) => (typeOfServer(data) === 'exit' ? [] : [data]) },
  'the exit has another code': { effects: (effects) => effects.map(withOtherExit) },
  'a signal is applied twice': { effects: (effects) => effects.flatMap(twiceIfSignal) },
  'an end of input is dropped': { effects: withoutEffect('closeInput') },
  'the process is not paused': { effects: withoutEffect('pause') },
  'the process is not resumed': { effects: withoutEffect('resume') },
  'a resize is dropped': { effects: withoutEffect('resize') },
  'an abandoned process is not terminated': { effects: withoutEffect('terminate') },
  'a retried create is not recognized': { forgetsCreates: true },
  'any principal may resume an attachment': { skipsOwnerCheck: true },
  'frames of a replaced connection are accepted': { mixesConnections: true },
  'a snapshot is older than its offset': { rendersStale: true },
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
