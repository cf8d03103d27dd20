import { StateEffect, StateField } from '@codemirror/state'

/** A position, and how far below the top of what scrolls it is drawn. */
export interface Anchor {
  readonly position: number
  readonly topPx: number
}

/** Holds another one from now on. */
export const holdAnchor = StateEffect.define<Anchor>()

/** What is held where it is drawn until a view has settled. It stays with its text when somebody writes meanwhile. */
export const heldAnchor = StateField.define<Anchor | undefined>({
  create: () => undefined,
  update(held, { changes, effects }) {
    for (const effect of effects) if (effect.is(holdAnchor)) return effect.value
    return held === undefined ? undefined : { ...held, position: changes.mapPos(held.position) }
  },
})
