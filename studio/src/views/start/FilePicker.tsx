import { type DragEvent, useId, useRef, useState } from "react";
import { checkFiles, type FileChoice, type FileNeed, formatBytes } from "../../pure/input_form.ts";
import { visibleText } from "../../pure/visible_text.ts";
import { start } from "../../text/start.ts";
import { Button } from "../../ui/Button.tsx";
import { droppedFiles, listedFiles, type PickedFile } from "./picked_files.ts";

interface FilePickerProps {
  label: string;
  need: FileNeed;
  choice: FileChoice<PickedFile>;
  onChange: (choice: FileChoice<PickedFile>) => void;
}

/** How many names are shown. */
const SHOWN = 20;

/** Chooses files: by a dialog, as a folder, or dropped. */
export function FilePicker({ label, need, choice, onChange }: FilePickerProps) {
  const id = useId();
  const [isOver, setOver] = useState(false);
  const add = (files: PickedFile[]) => onChange(checkFiles([...choice.accepted, ...files], need));
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void droppedFiles(event.dataTransfer).then(add);
  };
  const bytes = choice.accepted.reduce((sum, file) => sum + file.bytes, 0);
  return (
    <fieldset
      className="file-drop stack"
      data-over={isOver}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <legend>{label}</legend>
      <p className="muted">{start.filesDrop}</p>
      <div className="row">
        <ChooseButton
          id={`${id}-files`}
          name={start.filesChoose}
          isMany={need !== "workbook"}
          onFiles={add}
        />
        {need !== "workbook" && (
          <ChooseButton id={`${id}-folder`} name={start.folderChoose} isFolder onFiles={add} />
        )}
        {choice.accepted.length > 0 && (
          <Button kind="quiet" onClick={() => onChange({ accepted: [], refused: [] })}>
            {start.filesForget}
          </Button>
        )}
      </div>
      <div role="status" className="stack">
        {choice.accepted.length > 0 && <p>{start.filesChosen(choice.accepted.length, formatBytes(bytes))}</p>}
        {choice.refused.length > 0 && <Refused refused={choice.refused} />}
      </div>
      <Names files={choice.accepted} onRemove={(path) => onChange(without(choice, path))} />
      <p className="muted small">{start.filesReload}</p>
    </fieldset>
  );
}

function without(choice: FileChoice<PickedFile>, path: string): FileChoice<PickedFile> {
  return { ...choice, accepted: choice.accepted.filter((file) => file.path !== path) };
}

function Names({ files, onRemove }: { files: PickedFile[]; onRemove: (path: string) => void }) {
  if (files.length === 0) return null;
  return (
    <ul className="file-names">
      {files.slice(0, SHOWN).map((file) => (
        <li key={file.path} className="row">
          <bdi className="mono">{visibleText(file.path)}</bdi>
          <span className="muted small">{formatBytes(file.bytes)}</span>
          <Button
            kind="quiet"
            aria-label={start.fileRemove(visibleText(file.path))}
            onClick={() => onRemove(file.path)}
          >
            ×
          </Button>
        </li>
      ))}
      {files.length > SHOWN && <li className="muted">{start.filesMore(files.length - SHOWN)}</li>}
    </ul>
  );
}

function Refused({ refused }: { refused: FileChoice<PickedFile>["refused"] }) {
  return (
    <div className="field-problem">
      <p>{start.refused(refused.length)}</p>
      <ul>
        {refused.slice(0, 5).map(({ path, why }) => (
          <li key={`${path} ${why}`}>
            <bdi className="mono">{visibleText(path)}</bdi>: {start.refusals[why]}
          </li>
        ))}
        {refused.length > 5 && <li>{start.filesMore(refused.length - 5)}</li>}
      </ul>
    </div>
  );
}

interface ChooseButtonProps {
  id: string;
  name: string;
  isMany?: boolean;
  isFolder?: boolean;
  onFiles: (files: PickedFile[]) => void;
}

/** A button instead of the browser's own field, which cannot be styled and would be a second button of the same name. */
function ChooseButton({ id, name, isMany = false, isFolder = false, onFiles }: ChooseButtonProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        id={id}
        type="file"
        hidden
        multiple={isMany || isFolder}
        {...(isFolder && { webkitdirectory: "" })}
        onChange={(event) => {
          onFiles(listedFiles(event.target.files));
          // The same file can be chosen again.
          event.target.value = "";
        }}
      />
      <Button onClick={() => input.current?.click()}>{name}</Button>
    </>
  );
}
