import { schema } from '@sandwire/protocol'
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
 * An error is `{error: {code, message, request_id, full_disk?, missing_file?, start_failure?}}` with the status of its row;
 * `full_disk` is a folder on the disk that has no space left, `missing_file` the path in the data folder of what is missing or damaged, and
 * `start_failure` the reason of a `StartFailure`, when that was the cause.
 */

/** How messages describe a full disk. */
export const DISK_FULL = 'the disk that holds the data folder is full'

/** Which hosts a sandbox may connect to. */
export const networkSchema = schema.record({
  policy: schema.oneOf(['none', 'allowlist', 'open']),
  /** Host names, `*.name`, or `set:npm` for a predefined set; used by `allowlist` only. */
  allow: schema.list(schema.text(253), 256),
})
export type NetworkSpec = schema.Decoded<typeof networkSchema>

/** Resource limits of a sandbox. */
export const limitsSchema = schema.record({
  memoryBytes: schema.integer(16 * 1024 * 1024, 1024 ** 4),
  pids: schema.integer(8, 100_000),
  /** Thousandths of a processor. */
  milliCpus: schema.integer(10, 1_000_000),
  diskBytes: schema.integer(1024 * 1024, 1024 ** 5),
})
export type SandboxLimits = schema.Decoded<typeof limitsSchema>

export const DEFAULT_SANDBOX_LIMITS: SandboxLimits = {
  memoryBytes: 1024 ** 3,
  pids: 512,
  milliCpus: 1_000,
  diskBytes: 2 * 1024 ** 3,
}

/** Parameters of a sandbox to start. */
export const startSpecSchema = schema.record({
  id: schema.text(32),
  name: schema.text(63),
  /** Its owner: the sandboxes of one account share processor time as one sandbox does. */
  account: schema.optional(schema.text(64, /^[0-9a-z]+$/)),
  /** Control's public key, 32 bytes in base64url; the only part that the sandbox knows. */
  publicKey: schema.text(43),
  network: networkSchema,
  limits: limitsSchema,
  /** Added to the environment of every process. Never a secret. */
  env: schema.dictionary(256, /^[A-Za-z_][A-Za-z0-9_]*$/, schema.text(32 * 1024)),
  /** Most concurrent sessions; sandboxd's own limit when absent. */
  maxSessions: schema.optional(schema.integer(1, 10_000)),
  /** True when it ran before: it does not start without its files. */
  hasFiles: schema.optional(schema.bool),
  /** Output limit of one attachment; none when absent. */
  outputBytesPerSecond: schema.optional(schema.integer(1, 2 ** 40)),
})
export type StartSpec = schema.Decoded<typeof startSpecSchema>

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
  readonly isolation: 'bubblewrap' | 'container' | 'sprite' | 'none'
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

const runningSchema = schema.record({
  id: schema.text(32),
  state: schema.literal('running'),
  address: schema.text(16, SLOT_ADDRESS),
  epoch: schema.text(64),
  startedMs: schema.nonNegativeInteger,
})
const stoppedSchema = schema.record({
  id: schema.text(32),
  state: schema.literal('stopped'),
  reason: schema.optional(schema.text(64)),
})
const startingSchema = schema.record({ id: schema.text(32), state: schema.literal('starting') })
const absentSchema = schema.record({ id: schema.text(32), state: schema.literal('absent') })

/** Decodes a sandbox status; undefined when it is invalid. */
export function decodeSandboxStatus(value: unknown): SandboxStatus | undefined {
  return (
    runningSchema.decode(value) ??
    stoppedSchema.decode(value) ??
    startingSchema.decode(value) ??
    absentSchema.decode(value)
  )
}
