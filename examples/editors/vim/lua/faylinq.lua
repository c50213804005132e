-- SPDX-License-Identifier: MIT
-- Neovim's client of `fay lsp`: require('faylinq').setup(), or setup { '--comm', 'redis-server' }.
local M = {}

local function start(command)
	local config = { name = 'fay', cmd = command, root_dir = vim.fn.getcwd() }
	if vim.lsp.start then
		vim.lsp.start(config)
		return
	end
	-- before 0.8
	M.client = M.client or vim.lsp.start_client(config)
	vim.lsp.buf_attach_client(0, M.client)
end

function M.setup(options)
	local command = { 'fay', 'lsp' }
	for _, option in ipairs(options or {}) do
		table.insert(command, option)
	end
	vim.api.nvim_create_autocmd('FileType', {
		pattern = 'faylinq',
		callback = function()
			vim.bo.omnifunc = 'v:lua.vim.lsp.omnifunc'
			start(command)
		end,
	})
end

return M
