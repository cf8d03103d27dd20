import { closeSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { MAX_SLOTS } from '@sandwire/internal-api'
import { schema } from '@sandwire/protocol'
import { temporaryName } from '../data/private-file.ts'

/** Files of one sandbox in its own folder. */
export interface SandboxFiles {
  readonly folder: string
  readonly spec: string
  readonly state: string
  readonly log: string
  /** Locked by the sandbox's only supervisor. */
  readonly lock: string
  /** stderr of the supervisor. */
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

const pidSchema = schema.integer(1, 2 ** 31)
const aliveFields = {
  id: schema.text(32),
  /** Unique for each start. */
  epoch: schema.text(64),
  pid: pidSchema,
  /** Start time of the process, to detect a reused pid. */
  startTicks: schema.nonNegativeInteger,
  controlSocket: schema.text(4096),
}
const startingSchema = schema.record({ state: schema.literal('starting'), ...aliveFields })
const runningSchema = schema.record({
  state: schema.literal('running'),
  ...aliveFields,
  /** The sandbox's slot. */
  slot: schema.integer(0, MAX_SLOTS - 1),
  /** Host pid of sandboxd, by which connections to the sandbox are recognized. */
  daemonPid: pidSchema,
  startedMs: schema.nonNegativeInteger,
})
const stoppingSchema = schema.record({
  state: schema.literal('stopping'),
  ...aliveFields,
  reason: schema.optional(schema.text(64)),
})
const stoppedSchema = schema.record({
  state: schema.literal('stopped'),
  id: schema.text(32),
  /** Absent when the stop was requested. */
  reason: schema.optional(schema.text(64)),
})

export type RunningState = schema.Decoded<typeof runningSchema>
/** States of a supervisor that has a process. */
export type AliveState =
  | schema.Decoded<typeof startingSchema>
  | RunningState
  | schema.Decoded<typeof stoppingSchema>
/** The last written state of a supervisor. */
export type SupervisorState = AliveState | schema.Decoded<typeof stoppedSchema>

/** The reason as part of a state; absent for a requested stop. */
export function reasonInState(reason: string): { readonly reason?: string } {
  return reason === 'requested' ? {} : { reason }
}

/** Reads a state file; undefined when missing, or of another version. */
export function readState(file: string): SupervisorState | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
    return (
      runningSchema.decode(value) ??
      stoppedSchema.decode(value) ??
      startingSchema.decode(value) ??
      stoppingSchema.decode(value)
    )
  } catch {
    // Missing: never started. It is never incomplete, because it is renamed into place.
    return undefined
  }
}

/** Replaces a private file atomically. It describes processes, so it need not survive a power failure. */
export function replaceFile(file: string, text: string): void {
  const temporary = temporaryName(file)
  rmSync(temporary, { force: true })
  const fd = openSync(temporary, 'wx', 0o600)
  try {
    writeFileSync(fd, text)
    renameSync(temporary, file)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  } finally {
    closeSync(fd)
  }
}

export function writeState(file: string, state: SupervisorState): void {
  replaceFile(file, `${JSON.stringify(state)}\n`)
}
