import type { Provider } from './provider.ts'

/** A finished call of a provider. */
export interface ProviderCall {
  readonly call: string
  readonly elapsedMs: number
  readonly isOk: boolean
}

/** Measures the calls of any provider; retries are part of a call. */
export function measureProvider(
  provider: Provider,
  { nowMs, onCall }: { readonly nowMs: () => number; readonly onCall: (call: ProviderCall) => void },
): Provider {
  const measured = async <T>(call: string, run: () => Promise<T>): Promise<T> => {
    const startedMs = nowMs()
    let isOk = false
    try {
      const value = await run()
      isOk = true
      return value
    } finally {
      onCall({ call, elapsedMs: nowMs() - startedMs, isOk })
    }
  }
  return {
    survives: provider.survives,
    deliversStopReason: provider.deliversStopReason,
    ...(provider.checkpoints !== undefined && { checkpoints: provider.checkpoints }),
    ...(provider.execSessions !== undefined && { execSessions: provider.execSessions }),
    start: (...args) => measured('start', () => provider.start(...args)),
    status: (...args) => measured('status', () => provider.status(...args)),
    stop: (...args) => measured('stop', () => provider.stop(...args)),
    destroy: (...args) => measured('destroy', () => provider.destroy(...args)),
    disconnectAll: (...args) => measured('disconnect_all', () => provider.disconnectAll(...args)),
    renew: (...args) => measured('renew', () => provider.renew(...args)),
    logs: (...args) => measured('logs', () => provider.logs(...args)),
    health: (...args) => measured('health', () => provider.health(...args)),
    fetch: (address, request) =>
      measured(request.isPoll === true ? 'poll' : 'fetch', () => provider.fetch(address, request)),
  }
}
