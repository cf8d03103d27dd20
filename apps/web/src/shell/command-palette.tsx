import { type ReactElement, useState } from 'react'
import { keysText } from './commands.ts'
import { fuzzyFilter } from './fuzzy.ts'
import { Picker } from './picker.tsx'
import { useCommands } from './use-commands.ts'

/** Everything that can be done, by its name. */
export function CommandPalette({ onClose }: { readonly onClose: () => void }): ReactElement {
  const [typed, setTyped] = useState('')
  const commands = fuzzyFilter(useCommands(), typed, ({ title }) => title)
  return (
    <Picker
      title="Commands"
      placeholder="What to do"
      typed={typed}
      status="No command fits"
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
