/** Which watch is on which folder: one each, and the last one told is right. */
export class WatchedFolders {
  readonly #paths = new Map<number, string>()
  readonly #watches = new Map<string, number>()

  get size(): number {
    return this.#paths.size
  }

  has(path: string): boolean {
    return this.#watches.has(path)
  }

  pathOf(watch: number): string | undefined {
    return this.#paths.get(watch)
  }

  /** A folder that was moved keeps its watch, and a path may get another folder: then returns the watch that is not needed. */
  set(path: string, watch: number): number | undefined {
    const before = this.#watches.get(path)
    const moved = this.#paths.get(watch)
    if (moved !== undefined) this.#watches.delete(moved)
    if (before !== undefined) this.#paths.delete(before)
    this.#paths.set(watch, path)
    this.#watches.set(path, watch)
    return before === watch ? undefined : before
  }

  forget(watch: number): void {
    const path = this.#paths.get(watch)
    this.#paths.delete(watch)
    if (path !== undefined && this.#watches.get(path) === watch) this.#watches.delete(path)
  }

  /** Forgets a folder and all below it; returns their watches. */
  forgetBelow(path: string): number[] {
    const prefix = `${path}/`
    const gone = [...this.#watches].filter(([other]) => other === path || other.startsWith(prefix))
    for (const [, watch] of gone) this.forget(watch)
    return gone.map(([, watch]) => watch)
  }
}
