import { createContext, useContext } from 'react'
import type { TerminalShelf } from '../terminals/terminal-shelf.ts'
import type { Workbench } from './workbench.ts'

export interface Parts {
  readonly workbench: Workbench
  readonly terminals: TerminalShelf
}

export const PartsContext = createContext<Parts | undefined>(undefined)

/** What every part of the page works with. */
export function useParts(): Parts {
  const parts = useContext(PartsContext)
  if (parts === undefined) throw new Error('The page was drawn without its parts')
  return parts
}
