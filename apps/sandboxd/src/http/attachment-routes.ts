import { SandwireError, shape } from '@sandwire/protocol'
import type { SessionRegistry } from '../sessions/session-registry.ts'
import { readJson } from './read-json.ts'
import { respondJson } from './respond.ts'

const filterShape = shape.record({
  identity: shape.optional(shape.text(256)),
  login: shape.optional(shape.text(64)),
  grant: shape.optional(shape.text(128)),
  session: shape.optional(shape.text(128)),
  attachment: shape.optional(shape.text(32)),
})

/** `POST /attachments/close`: cuts off whoever matches everything that is given; what it was allowed no longer holds. */
export async function closeAttachments(
  request: Request,
  { registry }: { readonly registry: SessionRegistry },
): Promise<Response> {
  const filter = filterShape.decode(await readJson(request))
  if (filter === undefined || Object.keys(filter).length === 0)
    throw new SandwireError('bad_request', 'Cannot close attachments: nothing says whose')
  if (filter.attachment !== undefined && filter.session === undefined)
    throw new SandwireError('bad_request', 'Cannot close an attachment: its session is not given')
  return respondJson({ closed: registry.revoke(filter) })
}
