type Labels = Readonly<Record<string, string>>

const HELP: Readonly<Record<string, { readonly type: 'counter' | 'gauge'; readonly help: string }>> = {
  sandwire_requests_total: { type: 'counter', help: 'Requests, by route and status.' },
  sandwire_request_seconds_total: { type: 'counter', help: 'Time until the response began, by route.' },
  sandwire_errors_total: { type: 'counter', help: 'Error responses, by code.' },
  sandwire_attaches_total: { type: 'counter', help: 'Attaches, by outcome.' },
  sandwire_audit_dropped_total: { type: 'counter', help: 'Audit events dropped by sampling.' },
  sandwire_websocket_disconnects_total: {
    type: 'counter',
    help: 'Closed WebSockets to running sandboxes as of their last poll, by close code.',
  },
  sandwire_sandboxd_polled: { type: 'gauge', help: 'Sandboxes that the sandboxd metrics are from.' },
  sandwire_sandboxd_sessions: { type: 'gauge', help: 'Sessions of running sandboxes.' },
  sandwire_sandboxd_attachments: { type: 'gauge', help: 'Connected attachments of running sandboxes.' },
  sandwire_sandboxd_sessions_paused: {
    type: 'gauge',
    help: 'Sessions whose process is paused by flow control.',
  },
  sandwire_sandboxd_open_descriptors: { type: 'gauge', help: 'Open file descriptors of sandboxd, summed.' },
  sandwire_sandboxd_log_bytes: { type: 'gauge', help: 'Output stored for resume.' },
  sandwire_sandboxd_resident_memory_bytes: { type: 'gauge', help: 'Resident memory of sandboxd, summed.' },
  sandwire_sandboxd_sessions_created_total: { type: 'counter', help: 'Sessions created in sandboxes.' },
  sandwire_sandboxd_processes_ended_total: { type: 'counter', help: 'Processes of sessions that exited.' },
  sandwire_sandboxd_refused_total: {
    type: 'counter',
    help: 'Requests and connections that sandboxd refused.',
  },
  sandwire_sandboxd_output_bytes_total: { type: 'counter', help: 'Bytes read from processes.' },
  sandwire_sandboxd_input_bytes_total: { type: 'counter', help: 'Bytes received for processes.' },
  sandwire_ready: { type: 'gauge', help: 'Result of the last readiness check: 1 ok, 0 unavailable.' },
  sandwire_readiness_failures_total: {
    type: 'counter',
    help: 'Checks that found a dependency unavailable, by dependency and reason.',
  },
  sandwire_provider_calls_total: {
    type: 'counter',
    help: 'Provider calls with their retries, by provider, call and outcome.',
  },
  sandwire_provider_seconds_total: {
    type: 'counter',
    help: 'Time in provider calls, by provider and call.',
  },
  sandwire_sprites_requests_total: { type: 'counter', help: 'Requests into sprites, by status.' },
  sandwire_sprites_request_seconds_total: {
    type: 'counter',
    help: 'Time until responses from sprites began, with the connection.',
  },
  sandwire_sprites_ready_total: { type: 'counter', help: 'Sandboxes that became ready in their sprite.' },
  sandwire_sprites_ready_seconds_total: {
    type: 'counter',
    help: 'Time from the start of a sandbox until its sprite was ready.',
  },
  sandwire_sprites_ready_failures_total: {
    type: 'counter',
    help: 'Sandboxes whose sprite did not become ready, by reason.',
  },
  sandwire_sprites_disconnects_total: {
    type: 'counter',
    help: 'Ended WebSockets into sprites, by close code.',
  },
  sandwire_sprites_exec_attaches_total: {
    type: 'counter',
    help: 'Processes of the exec API that clients started or attached to, by kind and outcome.',
  },
  sandwire_objects_constructed_total: { type: 'counter', help: 'Durable Objects constructed, by class.' },
  sandwire_gateway_requests_total: {
    type: 'counter',
    help: 'Requests of agents to the credential gateway, by kind and outcome.',
  },
  sandwire_usage: { type: 'gauge', help: 'What the sandboxes of all accounts use, by resource.' },
  sandwire_usage_accounts: { type: 'gauge', help: 'Accounts that have sandboxes.' },
  sandwire_ceiling: { type: 'gauge', help: 'Ceiling of the machine, by resource; +Inf: none.' },
  sandwire_ceiling_refusals_total: { type: 'counter', help: 'Requests that exceeded a ceiling, by ceiling.' },
  sandwire_breaker_open: {
    type: 'gauge',
    help: 'Circuit breaker of the provider: 1 open, 0.5 half-open, 0 closed.',
  },
  sandwire_saves_total: { type: 'counter', help: 'Saves of files, by outcome.' },
  sandwire_save_failures_total: { type: 'counter', help: 'Failed saves of files, by code.' },
  sandwire_saved_bytes_total: { type: 'counter', help: 'Bytes that saves added to the store.' },
  sandwire_restores_total: { type: 'counter', help: 'Restored versions, by outcome.' },
  sandwire_unsaved_sandboxes: { type: 'gauge', help: 'Running sandboxes with changes that are not saved.' },
  sandwire_version_age_seconds: {
    type: 'gauge',
    help: 'Longest time for which changes of a running sandbox have not been saved.',
  },
  sandwire_version_bytes: { type: 'gauge', help: 'Stored bytes of the versions of running sandboxes.' },
  sandwire_disk_free_bytes: { type: 'gauge', help: 'Free space on the disk of the data folder.' },
  sandwire_disk_reserve_bytes: { type: 'gauge', help: 'Space on that disk that is held back for control.' },
}

/** Series per metric; later ones are not counted, so that memory is bounded. */
const MAX_SERIES = 1_000

function formatLabels(labels: Labels): string {
  const parts = Object.entries(labels).map(
    ([name, value]) =>
      `${name}="${value.replace(/[\\"\n]/g, (character) => `\\${character === '\n' ? 'n' : character}`)}"`,
  )
  return parts.length === 0 ? '' : `{${parts.join(',')}}`
}

function formatValue(value: number): string {
  return value === Number.POSITIVE_INFINITY ? '+Inf' : String(value)
}

/** Metrics of this isolate, in the Prometheus text format. */
export class Metrics {
  readonly #values = new Map<string, Map<string, number>>()

  count(name: string, labels: Labels = {}, by = 1): void {
    this.#write(name, labels, (value) => value + by)
  }

  set(name: string, value: number, labels: Labels = {}): void {
    this.#write(name, labels, () => value)
  }

  render(): string {
    const lines: string[] = []
    for (const [name, series] of this.#values) {
      const described = HELP[name]
      if (described !== undefined)
        lines.push(`# HELP ${name} ${described.help}`, `# TYPE ${name} ${described.type}`)
      for (const [labels, value] of series) lines.push(`${name}${labels} ${formatValue(value)}`)
    }
    return `${lines.join('\n')}\n`
  }

  #write(name: string, labels: Labels, change: (value: number) => number): void {
    const series = this.#values.get(name) ?? new Map<string, number>()
    this.#values.set(name, series)
    const key = formatLabels(labels)
    if (!series.has(key) && series.size >= MAX_SERIES) return
    series.set(key, change(series.get(key) ?? 0))
  }
}
