import type { ClientEffect } from './effects.ts'

/** Collects the effects of one call into the client session, in order. */
export class EffectBuffer {
  #effects: ClientEffect[] = []

  push(effect: ClientEffect): void {
    this.#effects.push(effect)
  }

  /** Hands over what was collected. */
  take(): readonly ClientEffect[] {
    const effects = this.#effects
    this.#effects = []
    return effects
  }
}
