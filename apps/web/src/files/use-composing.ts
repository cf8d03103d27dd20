import { type CompositionEventHandler, useEffect, useRef } from 'react'
import type { OpenFile } from './open-file.ts'

/** Tells a file when an input method puts a word together in an element that has these handlers. */
export function useComposing(file: OpenFile): {
  readonly onCompositionStart: CompositionEventHandler
  readonly onCompositionEnd: CompositionEventHandler
} {
  const ending = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(
    () => () => {
      clearTimeout(ending.current)
      file.compose(false)
    },
    [file],
  )
  return {
    onCompositionStart: () => {
      clearTimeout(ending.current)
      file.compose(true)
    },
    // The editor learns of the end of the word right after this event, and the next word may begin with it.
    onCompositionEnd: () => {
      ending.current = setTimeout(() => file.compose(false))
    },
  }
}
