import { readFileSync } from 'node:fs'
import { MAX_SLOTS, startSpecShape } from '@sandwire/internal-api'
import { shape } from '@sandwire/protocol'

const pathShape = shape.text(4096, /^\//)

const isolationShape = shape.record({
  kind: shape.oneOf(['bubblewrap', 'none']),
  dataFolder: pathShape,
  runBase: pathShape,
  scope: shape.optional(shape.text(8)),
  program: shape.record({
    executable: pathShape,
    code: shape.optional(shape.record({ folder: pathShape, entry: shape.text(4096) })),
  }),
  isRoot: shape.bool,
  diskBytesPerSecond: shape.optional(shape.nonNegativeInteger),
  egressCode: shape.optional(pathShape),
  hasOverlays: shape.optional(shape.bool),
  workspace: shape.optional(pathShape),
})

const specShape = shape.record({
  start: startSpecShape,
  isolation: isolationShape,
  /** Folder of state and log. */
  folder: pathShape,
  controlSocket: pathShape,
  /** Slots of the data folder. */
  slots: shape.record({
    folder: pathShape,
    count: shape.integer(1, MAX_SLOTS),
    group: shape.optional(shape.nonNegativeInteger),
  }),
  /** Folder of control's gates, one socket for each slot; absent: no credential gateway. */
  gates: shape.optional(pathShape),
  unclaimedMs: shape.integer(1, 2 ** 31 - 1),
  readyMs: shape.integer(1, 2 ** 31 - 1),
  /** How much the sandbox may write to its disk image until the host sets another limit; no limit when absent. */
  growthBytes: shape.optional(shape.nonNegativeInteger),
})

/** The isolation that a supervisor creates. */
export type IsolationChoice = shape.Decoded<typeof isolationShape>
/** Input of a supervisor, in a private file. */
export type SupervisorSpec = shape.Decoded<typeof specShape>

/** Reads a spec; undefined for another version. Throws when the file is missing. */
export function readSpec(file: string): SupervisorSpec | undefined {
  return specShape.decode(JSON.parse(readFileSync(file, 'utf8')))
}

/** Reason of a start that failed because the sandbox had files and they are missing. */
export const FILES_MISSING = 'files_missing'
/** Time without a claim after which a supervisor stops its sandbox. */
export const UNCLAIMED_MS = 10 * 60_000
/** Time for sandboxd to become ready; a cold start on a loaded machine takes seconds. */
export const READY_MS = 20_000
/** Time for sandboxd to end its processes. */
export const STOP_GRACE_MS = 5_000
/** The log of a sandbox and its predecessor take at most twice this. */
export const MAX_LOG_BYTES = 4 * 1024 * 1024
/** Longest message of a sandbox in one log line. */
export const MAX_LOG_LINE_CHARS = 8 * 1024
