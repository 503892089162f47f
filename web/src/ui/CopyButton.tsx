import { useEffect, useState } from 'react'
import { Button, IconButton } from './Button'
import { CheckIcon, CopyIcon } from './icons'
import { toast } from './toast'

// CopyButton copies exactly the given text, which may be shown with special characters made visible.
export function CopyButton({
  text,
  label = 'Copy',
  words,
  className,
}: {
  text: string | (() => string)
  label?: string
  words?: boolean
  className?: string
}) {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), 1500)
    return () => clearTimeout(timer)
  }, [copied])

  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === 'string' ? text : text())
      setCopied(true)
    } catch {
      toast('The browser did not allow copying.', 'failed')
    }
  }
  const icon = copied ? <CheckIcon /> : <CopyIcon />
  if (words)
    return (
      <Button small kind="quiet" className={className} onClick={copy}>
        {icon} <span aria-live="polite">{copied ? 'Copied' : label}</span>
      </Button>
    )
  return (
    <IconButton small className={className} label={copied ? 'Copied' : label} onClick={copy}>
      {icon}
    </IconButton>
  )
}
