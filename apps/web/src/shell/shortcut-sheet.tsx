import type { ReactElement } from 'react'
import { keysText } from './commands.ts'
import { Dialog } from './dialog.tsx'
import { isEditingKey } from './editing-keys.ts'
import { useCommands } from './use-commands.ts'

/** All keys that do something. */
export function ShortcutSheet({ onClose }: { readonly onClose: () => void }): ReactElement {
  const commands = useCommands().filter(({ keys }) => keys !== undefined)
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className="shortcuts">
        {commands.map(({ id, title, keys = '' }) => (
          <div key={id}>
            <dt>
              {title}
              {isEditingKey(keys, 'editor') && <small className="dim"> (not while a file is edited)</small>}
            </dt>
            <dd>
              <kbd>{keysText(keys)}</kbd>
            </dd>
          </div>
        ))}
        <div>
          <dt>Save the file</dt>
          <dd>
            <kbd>{keysText('Ctrl+S')}</kbd>
          </dd>
        </div>
        <div>
          <dt>Paste into a terminal</dt>
          <dd>
            <kbd>{keysText('Ctrl+Shift+V')}</kbd>
          </dd>
        </div>
        <div>
          <dt>Open a path or an address in a terminal</dt>
          <dd>
            <kbd>{keysText('Ctrl+Click')}</kbd>
          </dd>
        </div>
      </dl>
    </Dialog>
  )
}
