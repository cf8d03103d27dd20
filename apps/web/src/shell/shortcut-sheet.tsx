import type { ReactElement } from 'react'
import { keysText } from './commands.ts'
import { Dialog } from './dialog.tsx'
import { isEditingKey } from './editing-keys.ts'
import { useCommands } from './use-commands.ts'
import { shellTexts } from '../texts/shell.ts'

/** All keys that do something. */
export function ShortcutSheet({ onClose }: { readonly onClose: () => void }): ReactElement {
  const commands = useCommands().filter(({ keys }) => keys !== undefined)
  return (
    <Dialog title={shellTexts.shortcuts.title} onClose={onClose}>
      <dl className="shortcuts">
        {commands.map(({ id, title, keys = '' }) => (
          <div key={id}>
            <dt>
              {title}
              {isEditingKey(keys, 'editor') && (
                <small className="dim">{shellTexts.shortcuts.notInEditor}</small>
              )}
            </dt>
            <dd>
              <kbd>{keysText(keys)}</kbd>
            </dd>
          </div>
        ))}
        <div>
          <dt>{shellTexts.shortcuts.saveFile}</dt>
          <dd>
            <kbd>{keysText('Ctrl+S')}</kbd>
          </dd>
        </div>
        <div>
          <dt>{shellTexts.shortcuts.paste}</dt>
          <dd>
            <kbd>{keysText('Ctrl+Shift+V')}</kbd>
          </dd>
        </div>
        <div>
          <dt>{shellTexts.shortcuts.openPath}</dt>
          <dd>
            <kbd>{keysText('Ctrl+Click')}</kbd>
          </dd>
        </div>
      </dl>
    </Dialog>
  )
}
