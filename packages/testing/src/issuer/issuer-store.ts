import type { Adapter, AdapterPayload } from 'oidc-provider'

interface Row {
  readonly model: string
  readonly id: string
  readonly payload: AdapterPayload
}

/** In-memory storage of one issuer. The provider checks expiry itself. */
export class IssuerStore {
  readonly #rows = new Map<string, Row>()

  put(model: string, id: string, payload: AdapterPayload): void {
    this.#rows.set(`${model}:${id}`, { model, id, payload })
  }

  /** Deletes the codes, sessions, grants and refresh tokens of an account. */
  deleteAccount(account: string): void {
    this.#deleteWhere(({ payload }) => payload.accountId === account)
  }

  /** The provider's storage adapter for one model. */
  adapter(model: string): Adapter {
    const find = (matches: (row: Row) => boolean): AdapterPayload | undefined =>
      [...this.#rows.values()].find((row) => row.model === model && matches(row))?.payload
    return {
      upsert: async (id, payload) => this.put(model, id, payload),
      find: async (id) => find((row) => row.id === id),
      findByUserCode: async (userCode) => find(({ payload }) => payload.userCode === userCode),
      findByUid: async (uid) => find(({ payload }) => payload.uid === uid),
      consume: async (id) => {
        const payload = find((row) => row.id === id)
        if (payload !== undefined) payload.consumed = Math.floor(Date.now() / 1000)
      },
      destroy: async (id) => void this.#rows.delete(`${model}:${id}`),
      revokeByGrantId: async (grantId) => this.#deleteWhere(({ payload }) => payload.grantId === grantId),
    }
  }

  #deleteWhere(matches: (row: Row) => boolean): void {
    for (const [key, row] of this.#rows) if (matches(row)) this.#rows.delete(key)
  }
}
