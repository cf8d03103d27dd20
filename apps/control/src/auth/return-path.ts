/** Longest path that a sign-in comes back to. */
const MAX_CHARS = 512

/** What a path and a query are written with; no fragment, which can hold a secret, and no backslash, which browsers read as `/`. */
const WRITTEN = /^\/[\w.~!$&'()*+,;=:@%/?-]*$/

/** Something that a decoder on the way could turn into `//host`. */
const HIDDEN_SLASH = /%(2f|5c|25|[01]|7f)/i

/** Pages of the sign-in itself, where coming back would go round in circles, and what is not a page. */
const NOT_A_PAGE = /^\/(signin|api)(\/|$)/

/** The page of ours to come back to after a sign-in: this one if it is a path of ours, else the first page. */
export function returnPathOf(text: string | null | undefined): string {
  if (text === null || text === undefined || text.length > MAX_CHARS || !WRITTEN.test(text)) return '/'
  const { origin, pathname, search } = new URL(text, 'http://ours.invalid')
  // The parser removes `.` and `..`, which can bring two slashes together.
  const isOurs = origin === 'http://ours.invalid' && !pathname.includes('//') && !HIDDEN_SLASH.test(pathname)
  return isOurs && !NOT_A_PAGE.test(pathname) ? pathname + search : '/'
}
