import { DISK_FULL } from './host-api.ts'

/** Why a sandbox could not be started. As the cause of an error, the host API reports the reason to control as a field. */
export class StartFailure extends Error {
  /** A key of `EXPLANATIONS`, or how sandboxd ended: `exit_N` or `signal_NAME`. */
  readonly reason: string

  constructor(reason: string) {
    super(`The start failed: ${reason}`)
    this.reason = reason
  }
}

const EXPLANATIONS: Readonly<Record<string, string>> = {
  bad_spec: 'its supervisor has another version',
  data_disk_full: DISK_FULL,
  disk_full: 'its disk is full',
  egress_failed: 'its egress proxy could not be opened',
  gateway_failed: 'its socket to the credential gateway could not be opened',
  ids_in_use: 'it runs from another data folder, of which this one is a copy; stop it there first',
  late: 'it took too long',
  launch_failed: 'it could not be launched',
  not_ready: 'sandboxd was not ready in time',
  oom: 'it ran out of memory',
  prepare_failed: 'its files could not be prepared',
  slot_failed: 'its socket could not be published',
  stopped: 'it was stopped meanwhile',
  supervisor_failed: 'its supervisor failed',
  supervisor_lost: 'its supervisor died',
}

/** The reason as the end of a sentence. */
export function explainStartFailure(reason: string): string {
  return (
    (Object.hasOwn(EXPLANATIONS, reason) ? EXPLANATIONS[reason] : undefined) ??
    `sandboxd ended with "${reason}" before it was ready`
  )
}
