/** File suffix of each content coding. The first one that a client accepts is used. */
const SUFFIXES = { br: '.br', gzip: '.gz' } as const

export type Coding = keyof typeof SUFFIXES

export const CODINGS = ['br', 'gzip'] as const satisfies readonly Coding[]

/** The name of a file's compressed copy. */
export function nameInCoding(file: string, coding: Coding): string {
  return `${file}${SUFFIXES[coding]}`
}

/** The weight of each coding in an `Accept-Encoding`; 0: not accepted. */
function weightsOf(header: string): ReadonlyMap<string, number> {
  const named = header.split(',').map((part) => {
    const [name = '', ...parameters] = part.split(';').map((word) => word.trim().toLowerCase())
    const weight = /^q=(\d(?:\.\d{1,3})?)$/.exec(parameters.find((one) => one.startsWith('q=')) ?? 'q=1')?.[1]
    return [name, Number(weight ?? 0)] as const
  })
  return new Map(named)
}

/** The offered codings that a client accepts, in our order of preference. */
export function acceptedCodings(header: string | undefined, offered: readonly Coding[]): readonly Coding[] {
  const weights = weightsOf(header ?? '')
  return offered.filter((coding) => (weights.get(coding) ?? weights.get('*') ?? 0) > 0)
}

/** The strong ETag of a file in a coding. The name contains a content hash. */
export function tagOf(name: string, coding: Coding | undefined): string {
  return `"${coding === undefined ? name : nameInCoding(name, coding)}"`
}

/** True if an `If-None-Match` lists the ETag. */
export function hasTag(header: string | undefined, tag: string): boolean {
  return (header ?? '').split(',').some((one) => ['*', tag].includes(one.trim().replace(/^W\//, '')))
}
