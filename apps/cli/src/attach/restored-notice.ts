import { schema } from '@sandwire/protocol'
import type { Api } from '../server/api.ts'
import { looseObject } from '../server/response.ts'
import { formatUtc } from '../text/table.ts'

/** How long a restore is reported after it. */
const SHOWN_MS = 5 * 60_000

const viewSchema = looseObject({
  name: schema.text(128),
  saved: schema.optional(
    schema.nullable(
      looseObject({
        restored: schema.optional(
          schema.nullable(
            looseObject({
              savedMs: schema.nonNegativeInteger,
              restoredMs: schema.nonNegativeInteger,
              reason: schema.text(64),
            }),
          ),
        ),
      }),
    ),
  ),
})

/** What a user must know about the files of a sandbox that was lost and recreated; undefined: nothing. */
export async function findRestoredNotice(
  api: Pick<Api, 'request'>,
  sandbox: string,
  nowMs: number,
): Promise<string | undefined> {
  const path = `/api/sandboxes/${encodeURIComponent(sandbox)}`
  // The attach itself reports what is wrong with the server.
  const view = viewSchema.decode(await api.request('GET', path).catch(() => undefined))
  const restored = view?.saved?.restored ?? undefined
  if (view === undefined || restored === undefined || restored.reason !== 'lost') return undefined
  if (Math.abs(nowMs - restored.restoredMs) > SHOWN_MS) return undefined
  return `${view.name} was restored from the version of ${formatUtc(restored.savedMs)} UTC; later changes are lost`
}
