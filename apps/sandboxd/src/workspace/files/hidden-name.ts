/** What names of things that are not finished begin with. */
const PREFIX = '.sandwire-'
const SUFFIX = '.part'

/** A name beside a file that nobody else uses, with a zero at the end. */
export function hiddenName(): Uint8Array {
  const random = crypto.getRandomValues(new Uint8Array(12)).toHex()
  return Buffer.from(`${PREFIX}${random}${SUFFIX}\0`)
}

/** Whether a name is of something that is not finished. */
export function isHiddenName(name: string): boolean {
  return name.startsWith(PREFIX) && name.endsWith(SUFFIX)
}
