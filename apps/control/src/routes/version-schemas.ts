import { z } from '@hono/zod-openapi'
import { MAX_AUTOMATIC_VERSIONS, MAX_CHECKPOINT_DAYS } from '../versions/retention.ts'
import type { ListedVersion, VersionList } from '../versions/version-store.ts'
import { between, sandboxName, sandboxParams } from './schemas.ts'

const NAME_RULE = 'expected lower-case letters, digits and hyphens (max 63), with a letter first'
const name = z
  .string({ error: NAME_RULE })
  // A letter first: a number is the number of a version.
  .regex(/^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/, NAME_RULE)
export const newCheckpoint = z.strictObject({ name: name.exactOptional() }).openapi('NewCheckpoint')

/** Name or number of a version. */
export const versionName = z.string().regex(/^[a-z0-9-]{1,63}$/, 'expected the name or number of a version')
export const versionParams = sandboxParams.extend({ version: versionName })
export const versionView = z
  .object({
    version: z.int(),
    name: z.string().nullable(),
    kind: z.enum(['automatic', 'checkpoint']),
    savedMs: z.int(),
    isNewest: z.boolean(),
    isFuzzy: z.boolean().openapi({ description: 'Processes ran while it was saved.' }),
    unreadable: z.int().openapi({ description: 'Number of files that could not be read.' }),
    addedBytes: z.int().openapi({ description: 'What this version added to the store.' }),
    isHeld: z.boolean().openapi({
      description: 'It is kept because a message of a conversation or run can be restored to it.',
    }),
  })
  .openapi('Version')
const automaticVersions = between(1, MAX_AUTOMATIC_VERSIONS).openapi({
  description: 'How many automatic versions are kept.',
})
const checkpointDays = between(1, MAX_CHECKPOINT_DAYS).nullable().openapi({
  description: 'Days after which a checkpoint is deleted; null: it is kept.',
})
export const retentionBody = z
  .strictObject({
    automaticVersions: automaticVersions.exactOptional(),
    checkpointDays: checkpointDays.exactOptional(),
  })
  .openapi('RetentionSettings', {
    description: 'What is absent is inherited: by a sandbox from its account, by an account from the server.',
  })
export const retentionView = z.object({ automaticVersions, checkpointDays }).openapi('Retention')
export const versionList = z
  .object({
    versions: z.array(versionView),
    retention: retentionView,
    storedBytes: z
      .int()
      .openapi({ description: 'Bytes in the store; content that versions share counts once.' }),
  })
  .openapi('Versions')

export function toVersionList({
  versions,
  retention,
  storedBytes,
}: VersionList): z.infer<typeof versionList> {
  const newest = versions[0]?.number
  return { versions: versions.map((each) => toVersionView(each, newest)), retention, storedBytes }
}

export const newFork = z
  .strictObject({
    name: sandboxName,
    start: z.boolean().optional().openapi({ description: 'Start the sandbox at once. Default true.' }),
  })
  .openapi('NewFork')

export const diffQuery = z.strictObject({
  to: versionName.exactOptional().openapi({ description: 'The later version; default: the newest.' }),
})
const changeView = z
  .object({
    path: z.string(),
    change: z.enum(['added', 'removed', 'modified']),
    kind: z.enum(['file', 'folder', 'link', 'fifo']),
    beforeBytes: z.int().nullable(),
    afterBytes: z.int().nullable(),
  })
  .openapi('VersionChange')
export const diffView = z
  .object({
    from: z.int(),
    to: z.int(),
    changes: z.array(changeView),
    isComplete: z.boolean().openapi({ description: 'False: there are more changes.' }),
  })
  .openapi('VersionDiff')

export function toVersionView(
  version: ListedVersion,
  newest: number | undefined,
): z.infer<typeof versionView> {
  const { number, kind, createdMs, isFuzzy, unreadable, addedBytes, isHeld } = version
  return {
    version: number,
    name: version.name ?? null,
    kind,
    savedMs: createdMs,
    isNewest: number === newest,
    isFuzzy,
    unreadable,
    addedBytes,
    isHeld,
  }
}
