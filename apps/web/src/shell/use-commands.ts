import { useParts } from '../state/context.ts'
import { useHasPlace } from '../state/use-rights.ts'
import { type Command, commandsOf } from './commands.ts'

/** The commands that this person can use. */
export function useCommands(): readonly Command[] {
  const hasPlace = useHasPlace()
  return commandsOf(useParts()).filter(({ isForWork = false }) => hasPlace || !isForWork)
}
