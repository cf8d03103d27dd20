import { closeSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { MAX_SLOTS } from '@sandwire/internal-api'
import { shape } from '@sandwire/protocol'
import { temporaryName } from '../data/private-file.ts'

/** Files of one sandbox in its own folder. */
export interface SandboxFiles {
  readonly folder: string
  readonly spec: string
  readonly state: string
  readonly log: string
  /** Held by the one supervisor that the sandbox may have. */
  readonly lock: string
  /** What a supervisor says when it breaks. */
  readonly crash: string
}

export function filesIn(folder: string): SandboxFiles {
  const at = (name: string): string => path.join(folder, name)
  return {
    folder,
    spec: at('spec.json'),
    state: at('state.json'),
    log: at('log.jsonl'),
    lock: at('lock'),
    crash: at('crash.txt'),
  }
}

const pidShape = shape.whole(1, 2 ** 31)
const aliveFields = {
  id: shape.text(32),
  /** Differs for every start. */
  epoch: shape.text(64),
  pid: pidShape,
  /** When the process started, so that a later one with its number is not taken for it. */
  startTicks: shape.offset,
  controlSocket: shape.text(4096),
}
const startingShape = shape.record({ state: shape.literal('starting'), ...aliveFields })
const runningShape = shape.record({
  state: shape.literal('running'),
  ...aliveFields,
  /** The way into the sandbox. */
  slot: shape.whole(0, MAX_SLOTS - 1),
  /** sandboxd, as the other end of connections into the sandbox is known by. */
  daemonPid: pidShape,
  startedMs: shape.offset,
})
const stoppingShape = shape.record({
  state: shape.literal('stopping'),
  ...aliveFields,
  reason: shape.optional(shape.text(64)),
})
const stoppedShape = shape.record({
  state: shape.literal('stopped'),
  id: shape.text(32),
  /** Absent when the stop was requested. */
  reason: shape.optional(shape.text(64)),
})

export type RunningState = shape.Decoded<typeof runningShape>
/** States of a supervisor that has a process. */
export type AliveState =
  | shape.Decoded<typeof startingShape>
  | RunningState
  | shape.Decoded<typeof stoppingShape>
/** What the supervisor of a sandbox last said of itself. */
export type SupervisorState = AliveState | shape.Decoded<typeof stoppedShape>

/** What a state says of why the sandbox ended. */
export function reasonInState(reason: string): { readonly reason?: string } {
  return reason === 'requested' ? {} : { reason }
}

/** Reads a state file; undefined when there is none, or none of this version. */
export function readState(file: string): SupervisorState | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
    return (
      runningShape.decode(value) ??
      stoppedShape.decode(value) ??
      startingShape.decode(value) ??
      stoppingShape.decode(value)
    )
  } catch {
    // Absent: nothing was started yet. It is never half written, because it is renamed into place.
    return undefined
  }
}

/** Replaces a file that only this user can read. It speaks of processes, so it need not survive a power cut. */
export function replaceFile(file: string, text: string): void {
  const fresh = temporaryName(file)
  rmSync(fresh, { force: true })
  const fd = openSync(fresh, 'wx', 0o600)
  try {
    writeFileSync(fd, text)
    renameSync(fresh, file)
  } catch (error) {
    rmSync(fresh, { force: true })
    throw error
  } finally {
    closeSync(fd)
  }
}

export function writeState(file: string, state: SupervisorState): void {
  replaceFile(file, `${JSON.stringify(state)}\n`)
}
