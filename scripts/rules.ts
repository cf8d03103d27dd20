/** Differences between the protocol's rules and the test titles; all lists are empty when they agree. */
export type RuleReport = {
  /** Rules that no test title cites. */
  readonly untested: readonly string[]
  /** Ids that a title cites and the protocol does not define. */
  readonly undefined: readonly string[]
  /** Ids that the protocol defines more than once. */
  readonly repeated: readonly string[]
}

// - **[R3]** The receiver …
const definition = /^\s*[-*]\s+\*\*\[([A-Z]{1,3}\d{1,3})\]\*\*/gm
const citation = /\[([A-Z]{1,3}\d{1,3})\]/g
// test('…'), it.each(rows)("…"), test.concurrent.each(rows)('…'), describe.if(x)(`…`); skipped and todo tests do not count.
const title =
  /\b(?:test|it|describe)(?!\.(?:skip|todo)\()(?:\.\w+(?:\((?:[^()]|\([^()]*\))*\))?)*\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g

/** The ids of the rules that a Markdown text defines, in order. */
export function findDefinedRules(markdown: string): string[] {
  return [...markdown.matchAll(definition)].flatMap((match) => match[1] ?? [])
}

/** The ids that the test titles of a source text cite, in order. */
export function findCitedRules(source: string): string[] {
  const titles = [...source.matchAll(title)].map((match) => match[1] ?? match[2] ?? match[3] ?? '')
  return titles.flatMap((text) => [...text.matchAll(citation)].flatMap((match) => match[1] ?? []))
}

export function compareRules(defined: readonly string[], cited: readonly string[]): RuleReport {
  const definedSet = new Set(defined)
  const citedSet = new Set(cited)
  return {
    untested: [...definedSet].filter((id) => !citedSet.has(id)),
    undefined: [...citedSet].filter((id) => !definedSet.has(id)).sort(),
    repeated: [...definedSet].filter((id) => defined.indexOf(id) !== defined.lastIndexOf(id)),
  }
}
