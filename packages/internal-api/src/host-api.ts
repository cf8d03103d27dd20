import { shape } from '@sandwire/protocol'
import { SLOT_ADDRESS } from './slots.ts'

/**
 * The API of the host, which runs local sandboxes for control: HTTP over a unix socket that only the two can open.
 *
 * | request | answer |
 * |---|---|
 * | `GET /health` | `HostHealth` |
 * | `GET /sandboxes` | `{sandboxes: SandboxStatus[]}` |
 * | `GET /running` | `{ids: string[]}`, the running sandboxes; asks no supervisor |
 * | `PUT /sandboxes/:id` with `StartSpec` | `SandboxStatus`; starts it unless it runs; concurrent requests share one start |
 * | `GET /sandboxes/:id` | `SandboxStatus` |
 * | `POST /sandboxes/:id/stop?reason=` | `SandboxStatus`; files stay; the reason is a `StopReason` |
 * | `POST /sandboxes/:id/disconnect` | 204; closes every connection to it, which clients resume |
 * | `DELETE /sandboxes/:id` | 204; removes files too; also when there is none |
 * | `GET /sandboxes/:id/logs?bytes=N` | JSON lines, the last N bytes of them |
 *
 * An error is `{error: {code, message, request_id, full_disk?, missing_file?}}` with the status of its row; `full_disk` is a
 * folder on the disk that has no space left, and `missing_file` the path in the data folder of what is missing, when that was
 * the reason.
 */

/** How messages describe a full disk. */
export const DISK_FULL = 'the disk that holds the data folder is full'

/** Which hosts a sandbox may connect to. */
export const networkShape = shape.record({
  policy: shape.oneOf(['none', 'allowlist', 'open']),
  /** Host names, `*.name`, or `set:npm` for a predefined set; used by `allowlist` only. */
  allow: shape.list(shape.text(253), 256),
})
export type NetworkSpec = shape.Decoded<typeof networkShape>

/** Resource limits of a sandbox. */
export const limitsShape = shape.record({
  memoryBytes: shape.integer(16 * 1024 * 1024, 1024 ** 4),
  pids: shape.integer(8, 100_000),
  /** Thousandths of a processor. */
  milliCpus: shape.integer(10, 1_000_000),
  diskBytes: shape.integer(1024 * 1024, 1024 ** 5),
})
export type SandboxLimits = shape.Decoded<typeof limitsShape>

export const DEFAULT_SANDBOX_LIMITS: SandboxLimits = {
  memoryBytes: 1024 ** 3,
  pids: 512,
  milliCpus: 1_000,
  diskBytes: 2 * 1024 ** 3,
}

/** Parameters of a sandbox to start. */
export const startSpecShape = shape.record({
  id: shape.text(32),
  name: shape.text(63),
  /** Control's public key, 32 bytes in base64url; the only part that the sandbox knows. */
  publicKey: shape.text(43),
  network: networkShape,
  limits: limitsShape,
  /** Added to the environment of every process. Never a secret. */
  env: shape.dictionary(256, /^[A-Za-z_][A-Za-z0-9_]*$/, shape.text(32 * 1024)),
  /** Most concurrent sessions; sandboxd's own limit when absent. */
  maxSessions: shape.optional(shape.integer(1, 10_000)),
  /** True when it ran before: it does not start without its files. */
  hasFiles: shape.optional(shape.bool),
  /** Output limit of one attachment; none when absent. */
  outputBytesPerSecond: shape.optional(shape.integer(1, 2 ** 40)),
})
export type StartSpec = shape.Decoded<typeof startSpecShape>

export type SandboxStatus =
  | {
      readonly id: string
      readonly state: 'running'
      /** Slot of its sandboxd, such as `slot:17`. */
      readonly address: string
      /** Different for every start, so that a stale address is detected. */
      readonly epoch: string
      readonly startedMs: number
    }
  /** A start is in progress, possibly of an earlier host. */
  | { readonly id: string; readonly state: 'starting' }
  | {
      readonly id: string
      readonly state: 'stopped'
      /** Why it stopped, unless on request: `idle`, `shutting_down`, `unclaimed`, `oom`, `disk_full`, `exit_N`, `signal_NAME`. */
      readonly reason?: string
    }
  /** Never started here, or destroyed. */
  | { readonly id: string; readonly state: 'absent' }

export interface HostHealth {
  readonly status: 'ok'
  readonly version: string
  /** How sandboxes are isolated. */
  readonly isolation: 'bubblewrap' | 'container' | 'none'
  readonly sandboxes: number
  /** The disk of the data folder. */
  readonly disk?: {
    /** `low`: no new sandbox fits. `full`: control uses its reserve. */
    readonly status: 'ok' | 'low' | 'full'
    readonly freeBytes: number
    /** Held back for control. */
    readonly reserveBytes: number
  }
}

const runningShape = shape.record({
  id: shape.text(32),
  state: shape.literal('running'),
  address: shape.text(16, SLOT_ADDRESS),
  epoch: shape.text(64),
  startedMs: shape.nonNegativeInteger,
})
const stoppedShape = shape.record({
  id: shape.text(32),
  state: shape.literal('stopped'),
  reason: shape.optional(shape.text(64)),
})
const startingShape = shape.record({ id: shape.text(32), state: shape.literal('starting') })
const absentShape = shape.record({ id: shape.text(32), state: shape.literal('absent') })

/** Decodes a sandbox status; undefined when it is invalid. */
export function decodeSandboxStatus(value: unknown): SandboxStatus | undefined {
  return (
    runningShape.decode(value) ??
    stoppedShape.decode(value) ??
    startingShape.decode(value) ??
    absentShape.decode(value)
  )
}
