import { DISK_FULL } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'

/** What is told of a start that failed. Paths and causes are in the log of the sandbox, not here. */
const EXPLANATIONS: Readonly<Record<string, string>> = {
  bad_spec: 'its supervisor is of another version',
  data_disk_full: DISK_FULL,
  disk_full: 'its disk is full',
  egress_failed: 'its proxy could not be opened',
  late: 'it took too long',
  launch_failed: 'it could not be launched',
  no_way_in: 'there is no way into it',
  not_ready: 'sandboxd was not ready in time',
  oom: 'it ran out of memory',
  prepare_failed: 'its files could not be prepared',
  stopped: 'it was stopped meanwhile',
  supervisor_failed: 'its supervisor broke',
  supervisor_lost: 'its supervisor died',
}

/** The error for a start that failed for this reason. */
export function failed(name: string, reason: string): SandwireError {
  const explanation = Object.hasOwn(EXPLANATIONS, reason)
    ? EXPLANATIONS[reason]
    : `sandboxd ended with "${reason}" before it was ready`
  return new SandwireError('sandbox_failed', `Cannot start sandbox "${name}": ${explanation}`)
}
