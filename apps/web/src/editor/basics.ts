import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { bracketMatching, foldGutter, foldKeymap, indentOnInput } from '@codemirror/language'
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search'
import { EditorState, type Extension, type Text } from '@codemirror/state'
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view'
import { fileTexts } from '../texts/files.ts'
import type { FileText } from './file-text.ts'
import { THEME } from './theme.ts'
import { anchorField } from './view-position.ts'

interface Basics {
  readonly label?: string
  readonly isReadOnly?: boolean
  readonly onChange?: (lines: Text) => void
  readonly onSave?: () => void
}

/** The extensions that do not depend on the language. */
export function basics({
  label = fileTexts.editor.contents,
  isReadOnly = false,
  onChange,
  onSave,
}: Basics): Extension {
  return [
    lineNumbers(),
    foldGutter(),
    highlightSpecialChars(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    highlightSelectionMatches(),
    search({ top: true }),
    anchorField,
    EditorState.readOnly.of(isReadOnly),
    EditorView.editable.of(!isReadOnly),
    EditorView.contentAttributes.of({ 'aria-label': label }),
    keymap.of([
      { key: 'Mod-s', run: () => (onSave?.(), true), preventDefault: true },
      ...searchKeymap,
      ...historyKeymap,
      ...foldKeymap,
      indentWithTab,
      ...defaultKeymap,
    ]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) onChange?.(update.state.doc)
    }),
    THEME,
  ]
}

/** Line endings of pasted text are normalized, unless the file itself mixes several kinds. */
export function endsOf({ isMixed }: FileText): Extension {
  return isMixed ? EditorState.lineSeparator.of('\n') : []
}
