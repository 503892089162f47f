import { IconButton } from '../../ui/Button'
import { classes } from '../../ui/classes'
import { DotsIcon } from '../../ui/icons'
import { Menu, MenuItem, MenuLine } from '../../ui/Menu'
import type { ExportAs } from './exportChat'
import { StatusBadge } from '../../ui/StatusBadge'
import { Exact } from '../../ui/Mono'

interface ChatHeaderProps {
  title: string
  agent?: string
  model?: string // the model that answered last, or would answer
  status?: string
  mayMessage: boolean
  inspecting: boolean
  onInspect: () => void
  onCompact: () => void
  onLink: () => void
  onExport: (as: ExportAs) => void
  onClear: () => void
}

export function ChatHeader({
  title,
  agent,
  model,
  status,
  mayMessage,
  inspecting,
  onInspect,
  onCompact,
  onLink,
  onExport,
  onClear,
}: ChatHeaderProps) {
  return (
    <header className="flex h-12 shrink-0 items-center gap-2 border-b border-line px-4 max-md:pr-1 max-md:pl-13">
      <h1 className="min-w-0 truncate text-sm font-semibold">
        <Exact>{title}</Exact>
      </h1>
      {status !== undefined && (
        <StatusBadge status={status}>
          {status === 'waiting' ? 'waiting for you' : status === 'running' ? 'working' : undefined}
        </StatusBadge>
      )}
      <div className="ml-auto flex shrink-0 items-center gap-1">
        <span className="mr-1 hidden max-w-72 truncate text-xs text-ink-soft sm:inline">
          {[agent, model].filter(Boolean).join(' · ')}
        </span>
        <Menu
          items={
            <>
              {mayMessage && (
                <MenuItem onSelect={onCompact} hint="/compact">
                  Compact the context
                </MenuItem>
              )}
              <MenuItem onSelect={onLink}>Copy the link</MenuItem>
              <MenuLine />
              <MenuItem onSelect={() => onExport('copy')}>Copy as Markdown</MenuItem>
              <MenuItem onSelect={() => onExport('markdown')}>Export as Markdown</MenuItem>
              <MenuItem onSelect={() => onExport('html')}>Export as a web page</MenuItem>
              <MenuItem onSelect={() => onExport('jsonl')}>Export all events (JSON lines)</MenuItem>
              {mayMessage && (
                <>
                  <MenuLine />
                  <MenuItem danger onSelect={onClear} hint="/clear">
                    Delete the conversation
                  </MenuItem>
                </>
              )}
            </>
          }
        >
          <IconButton small label="Conversation actions">
            <DotsIcon />
          </IconButton>
        </Menu>
        <IconButton
          small
          label={inspecting ? 'Hide run details' : 'Show run details'}
          aria-pressed={inspecting}
          onClick={onInspect}
          className={classes(inspecting && 'bg-sunken text-ink')}
        >
          <PanelIcon />
        </IconButton>
      </div>
    </header>
  )
}

function PanelIcon() {
  return (
    <svg
      viewBox="0 0 16 16"
      width="1em"
      height="1em"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      aria-hidden="true"
      focusable="false"
    >
      <path d="M2.5 3.5h11v9h-11zM10 3.5v9" />
    </svg>
  )
}
