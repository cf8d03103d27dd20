/**
 * How well a text matches the typed letters in order; higher at word starts and for consecutive letters. Undefined:
 * no match.
 */
export function fuzzyScore(text: string, typed: string): number | undefined {
  const [hay, needle] = [text.toLowerCase(), typed.toLowerCase().replaceAll(/\s+/g, '')]
  let score = 0
  let from = 0
  for (const character of needle) {
    const at = hay.indexOf(character, from)
    if (at === -1) return undefined
    const before = hay[at - 1]
    const isBeginning = before === undefined || /[\s/._-]/.test(before)
    score += (at === from && from > 0 ? 8 : 0) + (isBeginning ? 5 : 0) - Math.min(at - from, 10) * 0.2
    from = at + 1
  }
  return score - text.length * 0.02
}

/** The matching items, best first. */
export function fuzzyFilter<T>(
  items: readonly T[],
  typed: string,
  textOf: (item: T) => string,
): readonly T[] {
  if (typed.trim() === '') return items
  return items
    .flatMap((item) => {
      const score = fuzzyScore(textOf(item), typed)
      return score === undefined ? [] : [{ item, score }]
    })
    .toSorted((left, right) => right.score - left.score)
    .map(({ item }) => item)
}
