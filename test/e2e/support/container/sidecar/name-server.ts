/** The address of intercepted names; unused otherwise, so every connection to it is an intercepted one. */
const CAUGHT_ADDRESS = [11, 0, 0, 1]
const TYPE_A = 1
const NAME_ERROR = 3
const HEADER_BYTES = 12

/** True when one of the patterns, such as `*.example.com`, matches the name. */
export function matchesName(patterns: readonly string[], name: string): boolean {
  return patterns.some((pattern) => {
    const source = pattern
      .split('*')
      .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
      .join('.*')
    return new RegExp(`^${source}$`, 'i').test(name)
  })
}

/** Answers a DNS query: intercepted names have an address, others do not exist. Undefined when it is not a query. */
export function answerQuestion(question: Buffer, isCaught: (name: string) => boolean): Buffer | undefined {
  const labels: string[] = []
  let at = HEADER_BYTES
  for (let length = question[at]; length !== 0; length = question[at]) {
    if (length === undefined || length > 63) return undefined
    labels.push(question.subarray(at + 1, at + 1 + length).toString('latin1'))
    at += 1 + length
  }
  const end = at + 5
  if (question.length < end) return undefined
  const isKnown = isCaught(labels.join('.'))
  const hasAddress = isKnown && question.readUInt16BE(at + 1) === TYPE_A
  const header = Buffer.alloc(HEADER_BYTES)
  question.copy(header, 0, 0, 2)
  header.writeUInt16BE(0x81_80 | (isKnown ? 0 : NAME_ERROR), 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(hasAddress ? 1 : 0, 6)
  // A pointer to the name in the question, type A, class IN, 5 s to live.
  const answer = Buffer.from([0xc0, HEADER_BYTES, 0, TYPE_A, 0, 1, 0, 0, 0, 5, 0, 4, ...CAUGHT_ADDRESS])
  return Buffer.concat([header, question.subarray(HEADER_BYTES, end), ...(hasAddress ? [answer] : [])])
}
