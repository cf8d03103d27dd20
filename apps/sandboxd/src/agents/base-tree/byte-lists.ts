/** Lists of file names, which are bytes. In memory a name is text with one character per byte, so that it compares and sorts as in git. */

/** Names from output in which each is followed by NUL. */
export function splitNames(output: Buffer): string[] {
  const names = output.toString('latin1').split('\0')
  names.pop()
  return names
}

/** Input for programs that read names with NUL after each. */
export function joinNames(names: readonly string[]): Buffer {
  return Buffer.from(names.map((name) => `${name}\0`).join(''), 'latin1')
}
