"""Synonyms for tool search in English and Chinese: a query finds a tool that is described in other words.

The table holds general vocabulary, one sense per line; a word may be in several. Product names stay out, except the few
that became ordinary words. Every line costs precision: it must help in any catalogue, not in one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

_SENSES = """
create add new make insert write 创建 新建 添加 新增 增加
generate create 生成 制作
delete remove 删除 移除
clear empty 清空 清除
update change edit modify patch write 修改 更新 更改 改
get read fetch show view describe what 获取 读取 查看 查询
list show browse which what who 列表 列出 有哪些 哪些 查询
search find query 搜索 查找 查询 搜 找
send deliver post 发送 发 下发
publish post 发布 发表
email mail gmail inbox 邮件 邮箱 电子邮件
message text 消息 信息
sms 短信
file 文件
document doc file 文档
folder directory 文件夹 目录
spreadsheet sheet excel 电子表格 表格
presentation slide powerpoint 演示文稿 幻灯片
calendar schedule 日历 日程
event appointment meeting 事件 活动 会议 日程
meeting conference meet 会议 通话
task todo 任务 待办
note 笔记
contact people person 联系人
user account person people 用户 账号
member participant attendee 成员 参与者
group team 群组 组 团队
channel 频道
chat 聊天 会话 对话
room 房间
image picture photo 图片 照片
video movie 视频
audio sound recording 音频 录音
voice speech audio 语音
speech voice synthesize speak 语音 合成
site website webpage 网站
page 网页 页面 页
url link address 链接
price cost fee 价格
bill invoice 账单
pay payment 支付 付款
buy purchase order 买 订购
renew renewal 续费 续期
server instance host 服务器 实例 主机
restart reboot 重启
start begin 启动 开始
stop end finish 停止 结束
terminate destroy 销毁 终止
run execute call 运行 执行 调用
cancel revoke 取消
copy duplicate clone 复制 克隆
move transfer 移动
rename 重命名
share 共享 分享
permission access acl role privilege 权限
download export 下载
export convert 导出 转换
upload import insert 上传 导入
translate translation 翻译
language 语言
detect recognize identify ocr 识别 检测
reply answer response 回复 回答
comment 评论
trash bin recycle 回收站
restore recover untrash 恢复 还原
invite invitation 邀请
subscribe subscription follow 订阅
notification alert notify 通知 提醒
reminder remind 提醒
course class classroom 课程 班级
student 学生
form survey 表单 问卷
blog 博客
post article 文章 帖子
place location 地点 位置
nearby near 附近
password 密码
secret credential key 密钥
key keypair 密钥 密钥对
domain 域名
dns resolution resolve 解析
record 记录
certificate cert ssl 证书
backup snapshot 备份 快照
bucket 存储桶
storage 存储
disk 硬盘 磁盘 云盘
drive disk 云盘
database db 数据库
log history 日志
version revision 版本
report statistics analytics metric 报告 统计
quota limit 配额
status state 状态
order 订单
customer client 客户
register enroll signup 注册
login 登录
logout 登出
enable activate 启用 激活
disable deactivate suspend 禁用 停用 暂停
approve accept allow 批准 接受
reject refuse 拒绝
complete finish done 完成
verify validate check 验证 校验
check inspect test 检查 测试
compare 比较 对比
count number 数量 多少
free available busy 空闲 有空
recurring repeat 重复
label tag 标签
category type 类别 分类
filter rule 过滤 规则
template 模板
draft 草稿
attachment attach 附件
recipient receiver 收件人
row append line 行
append add 追加
cell range 单元格 范围
settings configuration option 设置 配置
profile 个人资料
device 设备
administrator 管理员
organization company 企业 公司
live broadcast stream 直播
record recording 录制
text 文字 文本
firewall 防火墙
container docker 容器
bind associate attach 绑定 关联
unbind disassociate detach 解绑
reset 重置
time date 时间 日期
"""


@cache
def same_sense() -> Mapping[str, tuple[str, ...]]:
    """Maps each word to the other words of its senses, in the order of the table."""
    found: dict[str, dict[str, None]] = {}
    for line in _SENSES.strip().splitlines():
        words = line.split()
        for word in words:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in words if other != word))
    return {word: tuple(others) for word, others in found.items()}


_STOP = """
a an the of to in on at for and or but is are was were be been this that these those my your our his her its their
me i you we they he she it him us them with by from as into onto about please can could would will shall should do
does did how whom when where why there here some any if so not no than then too very also just only
have has had let want need s t ve re ll d
"""
STOP_WORDS = frozenset(_STOP.split())
"""English words that do not describe a tool."""

STOP_CHARACTERS = frozenset("的了吗呢把给请我你您他她吧啊")
"""Chinese characters that do not describe a tool."""
