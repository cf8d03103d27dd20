/** This machine, by the names and numbers that never leave it. */
const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Credentials may go there: it is HTTPS, or plain HTTP that never leaves this machine. */
export function isSecureUrl(text: string | URL): boolean {
  if (typeof text === 'string' && !URL.canParse(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  if (username !== '' || password !== '') return false
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK.has(hostname))
}

/** An address for people to open, spelled so that a terminal shows it and does not obey it; undefined if it is none. */
export function webAddress(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  // Parsing spells every control character and every character beyond ASCII out.
  return isWeb && url.username === '' && url.password === '' && /^[\x21-\x7e]{1,2048}$/.test(url.href)
    ? url.href
    : undefined
}
