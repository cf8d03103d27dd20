import { isSecureUrl } from '../sign-in/secure-url.ts'
import { Wrong } from '../options/words.ts'

/** A link to something shared: where it is, and what to show there. */
export interface ShareLink {
  readonly origin: string
  /** What follows the `#`; it never goes into a URL again. */
  readonly secret: string
}

const SECRET = /^[A-Za-z0-9._-]{20,512}$/

/** Reads a link. Throws `Wrong`, without repeating any of it. */
export function parseShareLink(text: string): ShareLink {
  const word = text.trim()
  const url = URL.canParse(word) ? new URL(word) : undefined
  const secret = url?.hash.slice(1) ?? ''
  if (url === undefined || url.pathname !== '/join' || !SECRET.test(secret))
    throw new Wrong('This is not a link to something shared', 'it looks like https://HOST/join#…')
  if (!isSecureUrl(url)) throw new Wrong('Cannot use this link: it is neither https nor of this machine')
  return { origin: url.origin, secret }
}
