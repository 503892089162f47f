import { IconButton } from '../../ui/Button'
import { classes } from '../../ui/classes'
import { CrossIcon } from '../../ui/icons'
import { Exact } from '../../ui/Mono'
import type { Attachments } from '../model/files'
import { documentIn } from '../model/images'

interface ChosenFilesProps {
  attachments: Attachments
  onChange: (attachments: Attachments) => void
}

// ChosenFiles lists the files that will be sent with a message. Each can be
// removed.
export function ChosenFiles({ attachments, onChange }: ChosenFilesProps) {
  const { pictures, files } = attachments
  if (pictures.length + files.length === 0) return null
  const withoutPicture = (at: number) => () => onChange({ ...attachments, pictures: pictures.toSpliced(at, 1) })
  const withoutFile = (at: number) => () => onChange({ ...attachments, files: files.toSpliced(at, 1) })
  return (
    <ul aria-label="Files to send" className="flex flex-wrap items-center gap-2 px-3 pt-3">
      {pictures.map(({ name, url }, at) =>
        documentIn(url) === undefined ? (
          <li key={at} className="relative">
            <img src={url} alt={name} className="h-16 w-16 rounded-md border border-line object-cover" />
            <IconButton
              small
              label={`Remove ${name}`}
              className="absolute -top-2 -right-2 size-6 !items-start !justify-end"
              onClick={withoutPicture(at)}
            >
              <span
                className={classes(
                  'flex size-6 items-center justify-center rounded-full',
                  'border border-line-strong bg-paper text-ink',
                )}
              >
                <CrossIcon />
              </span>
            </IconButton>
          </li>
        ) : (
          <Named key={at} name={name} onRemove={withoutPicture(at)} />
        ),
      )}
      {files.map(({ name }, at) => (
        <Named key={`${at} ${name}`} name={name} onRemove={withoutFile(at)} />
      ))}
    </ul>
  )
}

function Named({ name, onRemove }: { name: string; onRemove: () => void }) {
  return (
    <li className="flex min-h-8 max-w-60 items-center gap-1 rounded-md border border-line bg-sunken pl-2 text-sm">
      <span className="min-w-0 truncate font-mono">
        <Exact>{name}</Exact>
      </span>
      <IconButton small kind="plain" label={`Remove ${name}`} onClick={onRemove}>
        <CrossIcon />
      </IconButton>
    </li>
  )
}
