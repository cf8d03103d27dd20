/** The value below which `share` of the figures are; 0.5 is the median. Throws when there is none. */
export function quantile(figures: readonly number[], share: number): number {
  const sorted = figures.toSorted((a, b) => a - b)
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
  if (value === undefined) throw new Error('Cannot take a quantile: there are no figures')
  return value
}

export function median(figures: readonly number[]): number {
  const sorted = figures.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  if (Number.isInteger(middle)) return ((sorted[middle - 1] ?? 0) + quantile(sorted, 0.5)) / 2
  return quantile(sorted, 0.5)
}
