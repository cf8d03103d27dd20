import { SandwireError } from '@sandwire/protocol'
import type { Condition } from '../files.ts'

/** Most etags of one header. */
const MAX_TAGS = 64

/**
 * Etags of a header such as `If-Match`; `*` stands for any. Weak ones match nothing here: what is compared are bytes. An etag
 * out of a JSON answer is taken without quotes as well.
 */
export function parseTags(header: string | null): readonly string[] | undefined {
  if (header === null) return undefined
  const tags = header.split(',', MAX_TAGS + 1).map((tag) => tag.trim())
  if (tags.length > MAX_TAGS)
    throw new SandwireError('bad_request', 'Cannot use the condition: too many etags')
  return tags.filter((tag) => !tag.startsWith('W/')).map((tag) => /^"(.*)"$/.exec(tag)?.[1] ?? tag)
}

/** What the headers of a change ask for; throws `bad_request` for what cannot be checked. */
export function readCondition(headers: Headers): Condition {
  const ifMatch = parseTags(headers.get('if-match'))
  const ifNoneMatch = headers.get('if-none-match')
  if (ifNoneMatch !== null && ifNoneMatch.trim() !== '*')
    throw new SandwireError('bad_request', 'Cannot use If-None-Match here: expected *')
  return {
    ...(ifMatch === undefined ? {} : { ifMatch }),
    ...(ifNoneMatch === null ? {} : { ifAbsent: true }),
  }
}
