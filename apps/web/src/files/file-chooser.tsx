import { type ReactElement, useState } from 'react'
import { fuzzyFilter } from '../shell/fuzzy.ts'
import { Picker } from '../shell/picker.tsx'
import { baseName } from '../shell/view-title.ts'
import type { FileChoice } from './open-from-terminal.ts'
import { shownName } from './shown-name.ts'
import { fileTexts } from '../texts/files.ts'

/** Which of several files a place in a terminal means. */
export function FileChooser({
  choice,
  onClose,
}: {
  readonly choice: FileChoice
  readonly onClose: () => void
}): ReactElement {
  const [typed, setTyped] = useState('')
  const paths = fuzzyFilter(choice.paths, typed, (path) => path)
  return (
    <Picker
      title={fileTexts.fromTerminal.chooseTitle}
      placeholder={fileTexts.fromTerminal.several}
      typed={typed}
      status={fileTexts.fromTerminal.none}
      onType={setTyped}
      onClose={onClose}
      picks={paths.map((path) => ({
        id: path,
        label: shownName(baseName(path)),
        note: shownName(path),
        run: () => choice.open(path),
      }))}
    />
  )
}
