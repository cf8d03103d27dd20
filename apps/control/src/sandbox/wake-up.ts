/** The part of an object's storage that its alarm needs. */
export interface AlarmStorage {
  getAlarm(): Promise<number | null>
  setAlarm(atMs: number): Promise<void>
  deleteAlarm(): Promise<void>
}

/** The one alarm of an object, which several things wait for: it rings for the first, who then says when the next is due. */
export class WakeUp {
  readonly #storage: AlarmStorage
  /** One change at a time: each looks at what is set before it sets something. */
  #tail: Promise<unknown> = Promise.resolve()

  constructor(storage: AlarmStorage) {
    this.#storage = storage
  }

  /** Rings by then, or sooner where it is set so. */
  by(atMs: number): Promise<void> {
    return this.#inTurn(async () => {
      const setMs = await this.#storage.getAlarm()
      if (setMs === null || setMs > atMs) await this.#storage.setAlarm(atMs)
    })
  }

  /** Rings then and not before; undefined: never. */
  at(atMs: number | undefined): Promise<void> {
    return this.#inTurn(() =>
      atMs === undefined ? this.#storage.deleteAlarm() : this.#storage.setAlarm(atMs),
    )
  }

  #inTurn(run: () => Promise<void>): Promise<void> {
    const mine = this.#tail.then(run)
    // Whoever waits for its turn does not care how the last one went.
    this.#tail = mine.catch(() => undefined)
    return mine
  }
}
