type Labels = Readonly<Record<string, string>>

const HELP: Readonly<Record<string, { readonly type: 'counter' | 'gauge'; readonly help: string }>> = {
  sandwire_requests_total: { type: 'counter', help: 'Requests answered, by route and status.' },
  sandwire_request_seconds_total: { type: 'counter', help: 'Time until the answer began, by route.' },
  sandwire_errors_total: { type: 'counter', help: 'Errors answered, by code.' },
  sandwire_attaches_total: { type: 'counter', help: 'Attaches, by outcome.' },
  sandwire_audit_left_out_total: { type: 'counter', help: 'Refusals too frequent to be audited.' },
  sandwire_provider_calls_total: { type: 'counter', help: 'Calls of the provider, by call and outcome.' },
  sandwire_provider_seconds_total: { type: 'counter', help: 'Time in calls of the provider, by call.' },
  sandwire_objects_constructed_total: { type: 'counter', help: 'Durable Objects woken or made, by class.' },
  sandwire_breaker_open: { type: 'gauge', help: '1 while calls of the provider are refused, 0.5 on trial.' },
}

/** Series of one name at most; what comes later is not counted, so that nobody can grow this without end. */
const MAX_SERIES = 1_000

function spell(labels: Labels): string {
  const parts = Object.entries(labels).map(
    ([name, value]) =>
      `${name}="${value.replace(/[\\"\n]/g, (character) => `\\${character === '\n' ? 'n' : character}`)}"`,
  )
  return parts.length === 0 ? '' : `{${parts.join(',')}}`
}

/** Counters of this isolate, told in Prometheus' text form. */
export class Metrics {
  readonly #values = new Map<string, Map<string, number>>()

  count(name: string, labels: Labels = {}, by = 1): void {
    this.#write(name, labels, (value) => value + by)
  }

  set(name: string, value: number): void {
    this.#write(name, {}, () => value)
  }

  render(): string {
    const lines: string[] = []
    for (const [name, series] of this.#values) {
      const about = HELP[name]
      if (about !== undefined) lines.push(`# HELP ${name} ${about.help}`, `# TYPE ${name} ${about.type}`)
      for (const [labels, value] of series) lines.push(`${name}${labels} ${value}`)
    }
    return `${lines.join('\n')}\n`
  }

  #write(name: string, labels: Labels, change: (value: number) => number): void {
    const series = this.#values.get(name) ?? new Map<string, number>()
    this.#values.set(name, series)
    const key = spell(labels)
    if (!series.has(key) && series.size >= MAX_SERIES) return
    series.set(key, change(series.get(key) ?? 0))
  }
}
