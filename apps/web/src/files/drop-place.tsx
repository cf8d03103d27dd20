import { type DragEvent, type ReactElement, type ReactNode, useState } from 'react'

/** What a row of the tree is dragged as. */
export const PATH_TYPE = 'application/x-sandwire-path'

/** A place that takes files of the person's computer, and rows of the tree. */
export function DropPlace({
  onDrop,
  children,
}: {
  readonly onDrop: (transfer: DataTransfer) => void
  readonly children: ReactNode
}): ReactElement {
  const [isOver, setOver] = useState(false)
  const isTaken = ({ dataTransfer: { types } }: DragEvent): boolean =>
    types.includes('Files') || types.includes(PATH_TYPE)
  return (
    <div
      className={`drop-place ${isOver ? 'dropping' : ''}`}
      data-takes-files
      onDragOver={(event) => {
        if (!isTaken(event)) return
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      // A row may take the drop for its folder.
      onDropCapture={() => setOver(false)}
      onDrop={(event) => {
        if (!isTaken(event)) return
        event.preventDefault()
        onDrop(event.dataTransfer)
      }}
    >
      {children}
    </div>
  )
}
