import { SandwireError } from '@sandwire/protocol'
import { z } from 'zod'

/** Versions a side speaks: `protocol`, and everything down to `compatibleFrom`. */
export interface Versions {
  readonly protocol: number
  readonly compatibleFrom: number
}

const told = z.object({ protocol: z.int().min(0), compatible_from: z.int().min(0) })

/** Reads `/__meta/version`. */
export function decodeVersions(value: unknown): Versions | undefined {
  const result = told.safeParse(value)
  if (!result.success) return undefined
  return { protocol: result.data.protocol, compatibleFrom: result.data.compatible_from }
}

/** Throws `version_unsupported` unless each side is within what the other still speaks; says which one is old. */
export function checkVersions(ours: Versions, theirs: Versions): void {
  if (theirs.protocol < ours.compatibleFrom)
    throw new SandwireError(
      'version_unsupported',
      `Cannot use the sandbox: its sandboxd is old (protocol ${theirs.protocol}, needed ${ours.compatibleFrom}); stop and start the sandbox`,
    )
  if (theirs.compatibleFrom > ours.protocol)
    throw new SandwireError(
      'version_unsupported',
      `Cannot use the sandbox: this server is old (protocol ${ours.protocol}, the sandbox needs ${theirs.compatibleFrom}); update the server`,
    )
}
