import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { shownName } from '../../files/shown-name.ts'
import { useParts } from '../../state/context.ts'
import { sandboxTexts } from '../../texts/sandboxes.ts'

/** Says what is open from a sandbox and not saved, where it is about to go. */
export function UnsavedNote({ sandbox }: { readonly sandbox: string }): ReactElement | null {
  const { dirty } = useParts()
  const unsaved = [...useStore(dirty.views).values()].filter((one) => one.sandbox === sandbox)
  if (unsaved.length === 0) return null
  return (
    <p className="trouble">{sandboxTexts.unsaved(unsaved.map(({ path }) => shownName(path)).join(', '))}</p>
  )
}
