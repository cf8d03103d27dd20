/** Codings that files are kept in beside themselves, and what is behind the names of those. The first one that a client takes is used. */
const SUFFIXES = { br: '.br', gzip: '.gz' } as const

export type Coding = keyof typeof SUFFIXES

export const CODINGS = ['br', 'gzip'] as const satisfies readonly Coding[]

/** The name of a file in a coding. */
export function nameInCoding(file: string, coding: Coding): string {
  return `${file}${SUFFIXES[coding]}`
}

/** How much a client wants each coding that it names, by an `Accept-Encoding`; 0: not at all. */
function weightsOf(header: string): ReadonlyMap<string, number> {
  const named = header.split(',').map((part) => {
    const [name = '', ...parameters] = part.split(';').map((word) => word.trim().toLowerCase())
    const weight = /^q=(\d(?:\.\d{1,3})?)$/.exec(parameters.find((one) => one.startsWith('q=')) ?? 'q=1')?.[1]
    return [name, Number(weight ?? 0)] as const
  })
  return new Map(named)
}

/** Those of the offered codings that a client takes, in our order: what is smaller is better for everybody who takes it. */
export function acceptedCodings(header: string | undefined, offered: readonly Coding[]): readonly Coding[] {
  const weights = weightsOf(header ?? '')
  return offered.filter((coding) => (weights.get(coding) ?? weights.get('*') ?? 0) > 0)
}

/** The strong tag of bytes in a coding, by a name that no other bytes ever have. */
export function tagOf(name: string, coding: Coding | undefined): string {
  return `"${coding === undefined ? name : nameInCoding(name, coding)}"`
}

/** Whether a client has what a tag stands for, by an `If-None-Match`. */
export function hasTag(header: string | undefined, tag: string): boolean {
  return (header ?? '').split(',').some((one) => ['*', tag].includes(one.trim().replace(/^W\//, '')))
}
