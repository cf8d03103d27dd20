import { type ReactElement, useState } from 'react'
import { keysText } from './commands.ts'
import { fuzzyFilter } from './fuzzy.ts'
import { Picker } from './picker.tsx'
import { useCommands } from './use-commands.ts'
import { shellTexts } from '../texts/shell.ts'

/** Everything that can be done, by its name. */
export function CommandPalette({ onClose }: { readonly onClose: () => void }): ReactElement {
  const [typed, setTyped] = useState('')
  const commands = fuzzyFilter(useCommands(), typed, ({ title }) => title)
  return (
    <Picker
      title={shellTexts.palette.title}
      placeholder={shellTexts.palette.placeholder}
      typed={typed}
      status={shellTexts.palette.none}
      onType={setTyped}
      onClose={onClose}
      picks={commands.map(({ id, title, keys, run }) => ({
        id,
        run,
        label: title,
        ...(keys === undefined ? {} : { note: keysText(keys) }),
      }))}
    />
  )
}
