/** Index behind the string that begins here; the text is valid JSON, so it ends. */
function endOfString(text: string, from: number): number {
  let at = from + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (' \t\r\n'.includes(text[at] ?? '.')) at += 1
  return at
}

/** A key that an object in this valid JSON has twice: parsers differ in which one counts. */
export function findDuplicateKey(text: string): string | undefined {
  /** Keys of each object that is open; lists have none. */
  const open: Set<string>[] = []
  let at = 0
  while (at < text.length) {
    const char = text[at]
    if (char === '{' || char === '[') open.push(new Set())
    else if (char === '}' || char === ']') open.pop()
    else if (char === '"') {
      const end = endOfString(text, at)
      if (text[skipSpace(text, end)] === ':') {
        const key = String(JSON.parse(text.slice(at, end)))
        const keys = open.at(-1)
        if (keys?.has(key) === true) return key
        keys?.add(key)
      }
      at = end
      continue
    }
    at += 1
  }
  return undefined
}
